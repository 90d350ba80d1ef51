/** One event on its way through the accept stage, and what can be told of it without asking anybody. */
import { createHash } from 'node:crypto';
import type { EventContent } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import { idempotencyKeyName, type KeyHolder } from '../ports/accept-log.ts';
import { type LostKey, lostKeyOptions } from './promised.ts';
import type { NewEvent } from './read-event.ts';

export interface Accepted {
  readonly id: Uuid;
  readonly type: string;
  readonly tenant: string;
  readonly createdAt: number;
  readonly deliveries: number;
  readonly duplicate: boolean;
}

export interface Promised {
  readonly outboxSeq: string | null;
  readonly lostKey: LostKey | null;
  /** The answer to an earlier try was lost: it may have been stored by us. */
  readonly inDoubt: boolean;
}

export interface Waiting {
  readonly event: NewEvent;
  readonly id: Uuid;
  readonly fingerprint: Buffer | null;
  readonly since: number;
  /** Null: a request, which can be refused. */
  readonly promised: Promised | null;
  readonly resolve: (accepted: Accepted) => void;
  readonly reject: (error: unknown) => void;
}

export function withoutRepeats(batch: readonly Waiting[]): {
  unique: readonly Waiting[];
  repeated: Waiting[];
} {
  const seen = new Set<string>();
  const repeated: Waiting[] = [];
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

export function fingerprintOf(event: NewEvent): Buffer | null {
  if (event.idempotencyKey === null) return null;
  return createHash('sha256').update(event.type).update('\n').update(event.data).digest();
}

export function outboxSeqsOf(batch: readonly Waiting[]): readonly string[] | null {
  const first = batch[0]!.promised?.outboxSeq ?? null;
  return first === null ? null : batch.map(({ promised }) => promised!.outboxSeq!);
}

export function withoutKey(item: Waiting, holder: KeyHolder): Waiting {
  const { event, fingerprint, promised } = item;
  const lostKey: LostKey = {
    key: event.idempotencyKey!,
    eventId: holder.eventId,
    sameContent: holder.fingerprint.equals(fingerprint!),
  };
  return {
    ...item,
    event: { ...event, idempotencyKey: null },
    fingerprint: null,
    promised: { ...promised!, lostKey },
  };
}

export const inDoubt = (item: Waiting): Waiting =>
  item.promised === null ? item : { ...item, promised: { ...item.promised, inDoubt: true } };

/** A row of the outbox that is gone: another process has stored it, unless we may have done so ourselves. */
export const isSomebodyElses = ({ promised }: Waiting): boolean =>
  promised !== null && promised.outboxSeq !== null && !promised.inDoubt;

export const isDuplicate = ({ promised }: Waiting): boolean => promised?.lostKey?.sameContent ?? false;

export function storedOptions({ event, promised }: Waiting): Record<string, unknown> | null {
  const lostKey = promised?.lostKey ?? null;
  const options: Record<string, unknown> = lostKey === null ? {} : lostKeyOptions(lostKey);
  if (event.channels.length > 0) options.channels = event.channels;
  if (event.headers !== null) options.headers = event.headers;
  if (event.schemaVersion !== null) options.schema_version = event.schemaVersion;
  if (event.endpointIds !== null) options.endpoint_ids = event.endpointIds;
  if (event.deliverAt !== null) options.deliver_at = event.deliverAt;
  return Object.keys(options).length === 0 ? null : options;
}

export function toContent({ event, id }: Waiting): EventContent {
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

export function toAccepted(item: Waiting, deliveries: number): Accepted {
  const { type, tenant } = item.event;
  return {
    id: item.id,
    type,
    tenant,
    createdAt: timeOfId(item.id),
    deliveries,
    duplicate: isDuplicate(item),
  };
}

export function answerDuplicate(item: Waiting, holder: KeyHolder): void {
  if (!holder.fingerprint.equals(item.fingerprint!)) {
    item.reject(
      new Problem(
        'idempotency_conflict',
        `The idempotency key "${item.event.idempotencyKey}" was used for an event with another type or data.`,
        {
          errors: [{ path: 'idempotency_key', message: 'was used for something else' }],
        },
      ),
    );
    return;
  }
  const { type, tenant } = item.event;
  const { eventId, deliveries } = holder;
  item.resolve({ id: eventId, type, tenant, createdAt: timeOfId(eventId), deliveries, duplicate: true });
}
