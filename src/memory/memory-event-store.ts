import type { EventContent, UnmatchedReason } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import {
  type AppendOptions,
  type AppendResult,
  countDeliveries,
  type EventLookup,
  type EventRecord,
  type EventStore,
  idempotencyKeyName,
  type KeyHolder,
  type PartitionMark,
} from '../ports/event-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { isUnstored, type PartitionRow } from './kafka-tables.ts';
import { type MemoryStore, toMicroseconds } from './memory-store.ts';
import { newQueueRow } from './queue-table.ts';
import type { StoredKey } from './rows.ts';
import { checkEvent } from './stored-values.ts';

export function createMemoryEventStore(store: MemoryStore): EventStore {
  return {
    async append(events, options) {
      const delayMs = store.commitDelayMs();
      const result = append(store, events, options, store.visibleNow() + delayMs);
      if (delayMs > 0) await new Promise<void>((resolve) => store.clock.after(delayMs, resolve));
      return result;
    },
    async findKeyHolders(keys) {
      const holders = new Map<string, KeyHolder>();
      for (const { tenant, key } of keys) {
        const name = idempotencyKeyName(tenant, key);
        const stored = store.idempotencyKeys.get(name);
        if (stored === undefined) continue;
        const event = store.events.get(stored.eventId);
        holders.set(name, {
          eventId: stored.eventId,
          fingerprint: stored.fingerprint,
          deliveries: event?.deliveries ?? 0,
          unmatchedReason: (event?.options?.unmatched_reason as UnmatchedReason | undefined) ?? null,
          type: event?.type ?? '',
        });
      }
      return holders;
    },
    async ensureTenants(names) {
      for (const name of names) store.tenants.add(name);
    },
    async ensurePartitions({ oldestMs, newestMs }) {
      store.partitions.fromMs = Math.min(store.partitions.fromMs, oldestMs);
      store.partitions.untilMs = Math.max(store.partitions.untilMs, newestMs + 1);
    },
    now: async () => store.now(),
  };
}

function append(
  store: MemoryStore,
  events: readonly EventRecord[],
  options: AppendOptions,
  visibleAt: number,
): AppendResult {
  const tenants = new Set(events.map(({ tenant }) => tenant));
  if (store.hasChangedSince(options.endpointVersion, tenants)) return { stale: true };
  const { outboxSeqs, partition } = options;
  const isGuarded =
    outboxSeqs !== null ||
    partition !== undefined ||
    options.mayBeStored ||
    events.some((event) => event.idempotencyKey !== null || event.unwritten !== undefined);
  const owned = partition === undefined ? null : findPartition(store, partition);
  const incoming =
    owned !== null
      ? events.filter((_, index) => isUnstored(owned, BigInt(partition!.offsets[index]!)))
      : outboxSeqs === null
        ? events
        : findOrigin(store, events, options);
  checkEvents(store, incoming, isGuarded);

  const keyHolders = takeKeys(store, incoming, options);
  const written = new Set<Uuid>();
  for (const event of incoming) {
    if (event.idempotencyKey !== null && !keyHolders.has(event.id)) continue;
    if (store.events.has(event.id)) continue;
    write(store, event, visibleAt);
    written.add(event.id);
  }
  if (outboxSeqs !== null) deleteOrigin(store, incoming, options, keyHolders);
  if (owned !== null) {
    const stored = new Set(incoming.filter((event) => hasItsKey(event, keyHolders)));
    const offsets = partition!.offsets.filter((_, index) => stored.has(events[index]!)).map(BigInt);
    store.kafka.markStored(owned, offsets, partition!);
  }
  return { stale: false, written: isGuarded ? written : 'all' };
}

/** Throws before anything is written: a batch is written as a whole or not at all. */
function checkEvents(store: MemoryStore, events: readonly EventRecord[], isGuarded: boolean): void {
  const keys = new Set<string>();
  const ids = new Set<Uuid>();
  for (const event of events) {
    checkEvent(event);
    const madeAt = timeOfId(event.id);
    if (madeAt < store.partitions.fromMs || madeAt >= store.partitions.untilMs)
      throw new StoreError('missing_partition', `No partition for ids made at ${madeAt}.`);
    if (!isGuarded && (store.events.has(event.id) || ids.has(event.id)))
      throw new StoreError('invalid_row', `The event ${event.id} is stored already.`);
    ids.add(event.id);
    if (event.idempotencyKey === null) continue;
    const name = idempotencyKeyName(event.tenant, event.idempotencyKey);
    if (keys.has(name)) throw new StoreError('other', 'A batch has the same idempotency key twice.');
    keys.add(name);
  }
}

function findPartition(store: MemoryStore, { partitionId, epoch }: PartitionMark): PartitionRow {
  const row = store.kafka.findOwned(partitionId, epoch);
  if (row === undefined)
    throw new StoreError('fenced', `Another process has taken partition ${partitionId}.`);
  return row;
}

/** Returns the event id of a row of the outbox, or of a parked Kafka record that waits. */
function idOfOrigin(store: MemoryStore, seq: string, { fromParkedRecords }: AppendOptions): Uuid | undefined {
  if (!fromParkedRecords) return store.outbox.get(Number(seq))?.id;
  const row = store.kafka.parked.get(seq);
  return row?.state === 'waiting' ? row.id : undefined;
}

/** Returns the events whose rows still exist. Another process has taken the others. */
function findOrigin(
  store: MemoryStore,
  events: readonly EventRecord[],
  options: AppendOptions,
): readonly EventRecord[] {
  const ids = new Set(options.outboxSeqs!.map((seq) => idOfOrigin(store, seq, options)));
  return events.filter(({ id }) => ids.has(id));
}

const hasItsKey = ({ id, idempotencyKey }: EventRecord, keyHolders: ReadonlySet<Uuid>): boolean =>
  idempotencyKey === null || keyHolders.has(id);

/** Returns true if the key expired by the clocks of the store and of the process. */
export function isExpired(
  store: MemoryStore,
  { expiresAt }: Pick<StoredKey, 'expiresAt'>,
  { now = store.now(), mayExpireKeys = true }: Pick<AppendOptions, 'now' | 'mayExpireKeys'>,
): boolean {
  return mayExpireKeys && expiresAt <= Math.min(store.now(), now);
}

/** Returns the events that hold their key now: it was free or expired, or they held it before. */
function takeKeys(store: MemoryStore, events: readonly EventRecord[], options: AppendOptions): Set<Uuid> {
  const { idempotencyTtlMs, now = store.now() } = options;
  const keyHolders = new Set<Uuid>();
  const expiresAt = Math.max(store.now(), now) + idempotencyTtlMs;
  for (const { id, tenant, idempotencyKey, fingerprint } of events) {
    if (idempotencyKey === null) continue;
    const name = idempotencyKeyName(tenant, idempotencyKey);
    const held = store.idempotencyKeys.get(name);
    // A claimed event may never be stored, so another one takes its key over.
    const isFree = held === undefined || held.isClaimed || isExpired(store, held, options);
    if (!isFree && held.eventId !== id) continue;
    store.idempotencyKeys.set(name, { eventId: id, fingerprint: fingerprint!, expiresAt, isClaimed: false });
    keyHolders.add(id);
  }
  return keyHolders;
}

function write(store: MemoryStore, event: EventRecord, visibleAt: number): void {
  const { id: eventId, tenant, type: eventType, unwritten } = event;
  store.events.set(eventId, { ...event, deliveries: countDeliveries(event), visibleAt });
  for (const { id, endpointId } of event.skipped)
    store.finished.set(id, {
      id,
      endpointId,
      tenant,
      eventType,
      status: 'skipped',
      reason: 'endpoint_disabled',
      attempts: 0,
      replays: 0,
      lastStatusCode: null,
      lastErrorClass: null,
      finishedAt: store.now(),
    });
  // The deliveries of a large fan-out share one number, because its FIFO deliveries that are written later need it.
  const reserved = unwritten === undefined ? null : store.nextSeq();
  store.storeDebounceKeys(event.deliveries);
  for (const { id, endpointId, dueAt, fifo } of event.deliveries) {
    const time = dueAt === null ? null : toMicroseconds(dueAt);
    const seq = reserved ?? store.nextSeq();
    store.queue.add(newQueueRow({ id, endpointId, tenant, eventType, seq, visibleAt, fifo, dueAt: time }));
  }
  if (unwritten === undefined) return;
  let firstOrdinal = event.deliveries.length;
  const { deliverAt } = unwritten;
  for (const slice of unwritten.slices) {
    const { endpointIds } = slice;
    const facts = { eventId, firstOrdinal, tenant, eventType, seq: reserved!, deliverAt };
    store.fanOutSlices.add({ ...facts, ...slice, visibleAt, writtenAt: Number.POSITIVE_INFINITY });
    firstOrdinal += endpointIds.length;
  }
}

/** Deletes the rows of this batch, except those of events that did not get their key: they will be read again. */
function deleteOrigin(
  store: MemoryStore,
  incoming: readonly EventRecord[],
  options: AppendOptions,
  keyHolders: ReadonlySet<Uuid>,
): void {
  const stored = new Set(incoming.filter((event) => hasItsKey(event, keyHolders)).map(({ id }) => id));
  for (const seq of options.outboxSeqs!) {
    const id = idOfOrigin(store, seq, options);
    if (id === undefined || !stored.has(id)) continue;
    if (options.fromParkedRecords) store.kafka.parked.delete(seq);
    else store.outbox.delete(Number(seq));
  }
}

export function createMemoryEventLookup(store: MemoryStore): EventLookup {
  return {
    async load(ids) {
      const found = new Map<Uuid, EventContent>();
      for (const id of ids) {
        const event = store.events.get(id);
        if (event === undefined || event.visibleAt > store.visibleNow()) continue;
        const options = event.options as {
          headers?: Record<string, string>;
          schema_version?: string;
          test?: boolean;
        } | null;
        found.set(id, {
          id,
          tenant: event.tenant,
          type: event.type,
          data: event.data,
          idempotencyKey: event.idempotencyKey,
          schemaVersion: options?.schema_version ?? null,
          isTest: options?.test === true,
          headers: options?.headers ?? null,
        });
      }
      return found;
    },
  };
}
