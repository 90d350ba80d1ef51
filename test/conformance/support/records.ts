/** Events, starts and settlements for the suites, with defaults for fields that a test does not care about. */
import { createHash } from 'node:crypto';
import { WIRE_VERSION } from '../../../src/dispatch/ownership.ts';
import { CLOSED_BREAKER } from '../../../src/domain/breaker.ts';
import { shardOf } from '../../../src/domain/endpoint.ts';
import { deliveryIdOf, type Uuid } from '../../../src/domain/ids.ts';
import type { AttemptOutcome, Trigger, Verdict } from '../../../src/domain/outcome.ts';
import type { LoadedDelivery, SettleBatch, Settlement, Start } from '../../../src/ports/delivery-queue.ts';
import type { AppendOptions, EventRecord, NewDelivery } from '../../../src/ports/event-store.ts';
import type { OutboxRow } from '../../../src/ports/outbox-store.ts';
import type { StoreFixture } from './fixture.ts';
import { newEventId, newId } from './ids.ts';

export const WORKER = { id: newId(), name: 'worker-1' };
export const HOUR_MS = 3_600_000;

type EventParts = Partial<Omit<EventRecord, 'deliveries' | 'skipped'>> & {
  readonly endpointIds?: readonly Uuid[];
  readonly disabledIds?: readonly Uuid[];
  readonly delivery?: Partial<Pick<NewDelivery, 'dueAt' | 'fifo' | 'debounceKey'>>;
};

export function newEvent({
  endpointIds = [],
  disabledIds = [],
  delivery,
  ...parts
}: EventParts = {}): EventRecord {
  const id = parts.id ?? newEventId();
  const key = parts.idempotencyKey ?? null;
  const data = parts.data ?? Buffer.from('{"a":1}');
  return {
    id,
    tenant: 'acme',
    type: 'order.paid',
    idempotencyKey: null,
    fingerprint: key === null ? null : createHash('sha256').update(data).digest(),
    options: null,
    ...parts,
    data,
    deliveries: endpointIds.map((endpointId, ordinal) => ({
      id: deliveryIdOf(id, ordinal),
      endpointId,
      dueAt: null,
      fifo: false,
      ...delivery,
    })),
    skipped: disabledIds.map((endpointId, index) => ({
      id: deliveryIdOf(id, endpointIds.length + index),
      endpointId,
    })),
  };
}

export async function appendOptions(
  store: StoreFixture,
  options: Partial<AppendOptions> = {},
): Promise<AppendOptions> {
  return {
    endpointVersion: await store.endpointVersion(),
    mayBeStored: false,
    idempotencyTtlMs: HOUR_MS,
    outboxSeqs: null,
    ...options,
  };
}

/** Accepts one event for this endpoint. Returns the id of its delivery. */
export async function accept(
  store: StoreFixture,
  endpointId: Uuid,
  parts: Omit<EventParts, 'endpointIds'> = {},
): Promise<Uuid> {
  const event = newEvent({ ...parts, endpointIds: [endpointId] });
  await store.eventStore.append([event], await appendOptions(store));
  return event.deliveries[0]!.id;
}

/** Loads all waiting deliveries of an endpoint, fresh and scheduled. */
export async function loadAll(
  store: Pick<StoreFixture, 'queue'>,
  endpointId: Uuid,
): Promise<{ fresh: readonly LoadedDelivery[]; due: readonly LoadedDelivery[] }> {
  const lanes = await store.queue.loadLanes([{ endpointId, freshAfter: 0, dueFrom: 0, limit: 5_000 }]);
  return lanes.get(endpointId)!;
}

export async function loadOne(store: StoreFixture, endpointId: Uuid, id: Uuid): Promise<LoadedDelivery> {
  const { fresh, due } = await loadAll(store, endpointId);
  const found = [...fresh, ...due].find((delivery) => delivery.id === id);
  if (found === undefined) throw new Error(`The delivery ${id} does not wait.`);
  return found;
}

export const newOutcome = (parts: Partial<AttemptOutcome> = {}): AttemptOutcome => ({
  startedAt: Date.now(),
  durationMs: 12,
  timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: 10 },
  statusCode: 200,
  error: null,
  url: 'https://receiver.test/',
  requestHeaders: { 'webhook-id': 'evt_1' },
  responseHeaders: null,
  responseBody: null,
  responseTruncated: false,
  retryAfterMs: null,
  ...parts,
});

export const FAILED = newOutcome({ statusCode: 500, error: { class: 'http_5xx', message: 'HTTP 500' } });

export const DELIVERED: Verdict = { kind: 'delivered' };
export const retryAt = (dueAt: number): Verdict => ({ kind: 'retry', dueAt });
export const DEAD: Verdict = { kind: 'dead', reason: 'exhausted', disableEndpoint: false };

type SettlementParts = Partial<Pick<Settlement, 'attemptsBefore' | 'blocksLane' | 'fifo' | 'agesFrom'>> & {
  readonly attemptId?: Uuid;
  readonly outcome?: AttemptOutcome;
  readonly trigger?: Trigger;
  /** False: the delivery ends without a request. */
  readonly attempted?: boolean;
};

export function newSettlement(
  deliveryId: Uuid,
  endpointId: Uuid,
  verdict: Verdict,
  parts: SettlementParts = {},
): Settlement {
  const { attemptId, outcome, trigger = 'auto', attempted = true, ...rest } = parts;
  return {
    deliveryId,
    endpointId,
    tenant: 'acme',
    attemptsBefore: 0,
    verdict,
    blocksLane: false,
    fifo: false,
    agesFrom: Date.now(),
    ...rest,
    attempt: attempted
      ? {
          id: attemptId ?? newId(),
          outcome:
            outcome ?? (verdict.kind === 'delivered' ? newOutcome() : { ...FAILED, startedAt: Date.now() }),
          trigger,
          eventType: 'order.paid',
          tries: 1,
        }
      : null,
  };
}

export const batchOf = (
  settlements: readonly Settlement[],
  parts: Partial<Omit<SettleBatch, 'settlements'>> = {},
): SettleBatch => ({ settlements, health: [], endpointNotes: [], worker: WORKER, ...parts });

export const newStart = (deliveryId: Uuid, endpointId: Uuid, parts: Partial<Start> = {}): Start => ({
  deliveryId,
  attempts: 0,
  careful: false,
  shard: shardOf(endpointId),
  probe: null,
  ...parts,
});

export const OPEN_BREAKER = {
  ...CLOSED_BREAKER,
  circuit: 'open' as const,
  consecutiveFailures: 5,
  openedAt: 1_700_000_000_000,
  cooldownMs: 30_000,
  nextProbeAt: 1_700_000_030_000,
};

/** Registers a worker and gives it every free shard. */
export async function takeAllShards(store: StoreFixture, workerId: Uuid = WORKER.id): Promise<void> {
  const session = await store
    .createOwnership()
    .connect({ id: workerId, name: 'worker-1', wireVersion: WIRE_VERSION, region: null }, () => {});
  await session.takeShards(workerId, HOUR_MS, null);
  session.close();
}

export const newOutboxRow = (parts: Partial<OutboxRow> = {}): Omit<OutboxRow, 'seq'> => ({
  id: newEventId(),
  tenant: 'acme',
  type: 'order.paid',
  data: Buffer.from('{"a":1}'),
  idempotencyKey: null,
  options: null,
  ...parts,
});
