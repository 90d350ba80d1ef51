/** An event in the accept stage: admitted, but not answered yet. */
import { createHash } from 'node:crypto';
import type { EventContent, EventRecordSource, NewEvent, UnmatchedReason } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import {
  countDeliveries,
  type EventRecord,
  idempotencyKeyName,
  type KeyHolder,
  type PartitionMark,
} from '../ports/event-store.ts';
import type { CommittedDelivery } from '../ports/hand-over.ts';

/** The answer to a stored event. */
export interface AcceptAnswer {
  readonly id: Uuid;
  readonly type: string;
  readonly tenant: string;
  readonly createdAt: number;
  /** How many endpoints it is sent to. */
  readonly deliveries: number;
  /** Why it is sent to none. Null if it is sent to some, or if it repeats another event. */
  readonly unmatchedReason: UnmatchedReason | null;
  /** True if the idempotency key belongs to an earlier event with the same content. `id` is then that event's. */
  readonly duplicate: boolean;
}

export interface PendingEvent {
  readonly event: NewEvent;
  readonly id: Uuid;
  /** Hash of type and data. Null without an idempotency key. */
  readonly fingerprint: Buffer | null;
  /** When the event was admitted, on the monotonic clock. */
  readonly receivedAt: number;
  /** Null for a request, which can be rejected. */
  readonly committed: CommittedState | null;
  readonly resolve: (answer: AcceptAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** What the accept stage knows about an event that its producer has already committed. See committed-events.ts. */
export interface CommittedState {
  readonly outboxSeq: string | null;
  readonly lostKey: LostKey | null;
  /** True if the answer to an earlier try was lost: this process may have stored the event. */
  readonly isOutcomeUnknown: boolean;
  /** The Kafka record that it comes from. */
  readonly record?: EventRecordSource | undefined;
  /** True: it comes from the accept log. */
  readonly isFromAcceptLog?: boolean | undefined;
}

/** An idempotency key that turned out to belong to another event. */
export interface LostKey {
  readonly key: string;
  readonly holderId: Uuid;
  readonly hasSameContent: boolean;
}

export function fingerprintOf(event: NewEvent): Buffer | null {
  if (event.idempotencyKey === null) return null;
  return createHash('sha256').update(event.type).update('\n').update(event.data).digest();
}

/** Separates events that repeat an idempotency key of their batch: they must be written after the first event with it. */
export function splitRepeatedKeys(batch: readonly PendingEvent[]): {
  unique: readonly PendingEvent[];
  repeated: PendingEvent[];
} {
  const seen = new Set<string>();
  const repeated: PendingEvent[] = [];
  const unique = batch.filter((item) => {
    const key = item.event.idempotencyKey;
    if (key === null) return true;
    const name = idempotencyKeyName(item.event.tenant, key);
    if (!seen.has(name)) {
      seen.add(name);
      return true;
    }
    repeated.push(item);
    return false;
  });
  return { unique, repeated };
}

/** The outbox rows of a batch. Null if it does not come from the outbox; a batch is never mixed. */
export function outboxSeqsOf(batch: readonly PendingEvent[]): readonly string[] | null {
  const first = batch[0]!.committed?.outboxSeq ?? null;
  return first === null ? null : batch.map(({ committed }) => committed!.outboxSeq!);
}

/** The Kafka partition that a batch comes from. Undefined: it does not come from one; a batch is never mixed. */
export function partitionMarkOf(batch: readonly PendingEvent[]): PartitionMark | undefined {
  const record = batch[0]!.committed?.record;
  if (record?.kind !== 'partition') return undefined;
  const { partitionId, epoch, upTo, events } = record.batch;
  const offsets = batch.map(({ committed }) => (committed!.record as typeof record).offset);
  return { partitionId, epoch, upTo, batchEvents: events, offsets };
}

export const comesFromParkedRecords = (batch: readonly PendingEvent[]): boolean =>
  batch[0]!.committed?.record?.kind === 'parked';

/** Returns a committed event without its idempotency key, which belongs to `holder`. `lostKey` records the holder. */
export function withoutKey(item: PendingEvent, holder: KeyHolder): PendingEvent {
  const { event, fingerprint, committed } = item;
  const lostKey: LostKey = {
    key: event.idempotencyKey!,
    holderId: holder.eventId,
    hasSameContent: holder.fingerprint.equals(fingerprint!),
  };
  return {
    ...item,
    event: { ...event, idempotencyKey: null },
    fingerprint: null,
    committed: { ...committed!, lostKey },
  };
}

export const withUnknownOutcome = (item: PendingEvent): PendingEvent =>
  item.committed === null ? item : { ...item, committed: { ...item.committed, isOutcomeUnknown: true } };

/** Given that the store did not write this event: true if another process stored it, and not an earlier try of this one. */
export const storedByOther = ({ committed }: PendingEvent): boolean =>
  committed !== null && committed.outboxSeq !== null && !committed.isOutcomeUnknown;

/** True if the event repeats an earlier one under the same idempotency key. It is stored, but not delivered. */
export const isDuplicate = ({ committed }: PendingEvent): boolean =>
  committed?.lostKey?.hasSameContent ?? false;

export function toContent({ event, id }: PendingEvent): EventContent {
  return {
    id,
    tenant: event.tenant,
    type: event.type,
    data: event.data,
    idempotencyKey: event.idempotencyKey,
    schemaVersion: event.schemaVersion,
    headers: event.headers,
  };
}

export function toAcceptAnswer(item: PendingEvent, record: EventRecord): AcceptAnswer {
  const { type, tenant } = item.event;
  return {
    id: item.id,
    type,
    tenant,
    createdAt: timeOfId(item.id),
    deliveries: countDeliveries(record),
    unmatchedReason: (record.options?.unmatched_reason as UnmatchedReason | undefined) ?? null,
    duplicate: isDuplicate(item),
  };
}

/** Answers a request whose idempotency key belongs to `holder`: with that event, or with a conflict. */
export function answerWithHolder(item: PendingEvent, holder: KeyHolder): void {
  if (!holder.fingerprint.equals(item.fingerprint!)) {
    item.reject(
      new Problem(
        'idempotency_conflict',
        `The idempotency key "${item.event.idempotencyKey}" was used for an event with another type or data.`,
        {
          errors: [{ path: 'idempotency_key', message: 'was used for another event' }],
        },
      ),
    );
    return;
  }
  const { type, tenant } = item.event;
  const { eventId, deliveries, unmatchedReason } = holder;
  item.resolve({
    id: eventId,
    type,
    tenant,
    createdAt: timeOfId(eventId),
    deliveries,
    unmatchedReason,
    duplicate: true,
  });
}

/** The names of all idempotency keys of the batch. */
export const keyNamesOf = (batch: readonly PendingEvent[]): string[] =>
  batch.flatMap(({ event: { tenant, idempotencyKey } }) =>
    idempotencyKey === null ? [] : [idempotencyKeyName(tenant, idempotencyKey)],
  );

/** Adds the deliveries of a stored event, with its content. */
export function addDeliveries(
  deliveries: CommittedDelivery[],
  item: PendingEvent,
  record: EventRecord,
): void {
  if (record.deliveries.length === 0) return;
  const event = toContent(item);
  for (const delivery of record.deliveries) deliveries.push({ delivery, event });
}
