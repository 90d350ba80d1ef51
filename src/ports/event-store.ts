/**
 * Where accepted events become durable. A 202 is sent only after `append` has resolved, so an implementation must not
 * resolve before the events and their deliveries survive a crash of every process and of the store.
 */
import type { EventContent, UnmatchedReason } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';

/** A delivery as the accept stage creates it: one event for one endpoint. */
export interface NewDelivery {
  readonly id: Uuid;
  readonly endpointId: Uuid;
  /** When to send it first, in milliseconds since the epoch. Null: as soon as possible. */
  readonly dueAt: number | null;
  /** True if the endpoint is FIFO: the delivery keeps its place in the order of acceptance. */
  readonly fifo: boolean;
  /** The debounce key. Null or absent: the delivery is sent as it is. */
  readonly debounceKey?: string | null;
}

/** A delivery to a disabled endpoint: it ends as `skipped` with the reason `endpoint_disabled`, and is never queued. */
export type SkippedDelivery = Pick<NewDelivery, 'id' | 'endpointId'>;

/** An event with its matched deliveries, ready to be written. */
export interface EventRecord {
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: string;
  readonly data: Buffer;
  readonly idempotencyKey: string | null;
  /** Hash of type and data. It distinguishes a repeated request from a key that was reused for another event. */
  readonly fingerprint: Buffer | null;
  readonly options: Readonly<Record<string, unknown>> | null;
  readonly deliveries: readonly NewDelivery[];
  readonly skipped: readonly SkippedDelivery[];
  /** Deliveries of a large fan-out that `FanOutStore` writes later. The event is then alone in its batch. */
  readonly unwritten?: UnwrittenDeliveries | undefined;
}

export interface UnwrittenDeliveries {
  /** The ordinals continue those of `deliveries`. FIFO endpoints come first, disabled ones last. */
  readonly slices: readonly UnwrittenSlice[];
  /** `deliver_at` of the event, in milliseconds since the epoch. */
  readonly deliverAt: number | null;
}

export interface UnwrittenSlice {
  readonly endpointIds: readonly Uuid[];
  readonly hasFifo: boolean;
  /** True if all its endpoints are disabled. */
  readonly wasDisabled: boolean;
}

/** Counts the deliveries of an event that will be sent, those that are written later included. */
export function countDeliveries({ deliveries, unwritten }: EventRecord): number {
  let count = deliveries.length;
  for (const { endpointIds, wasDisabled } of unwritten?.slices ?? [])
    if (!wasDisabled) count += endpointIds.length;
  return count;
}

export interface AppendOptions {
  /** Version of the endpoints that the events were matched against. */
  readonly endpointVersion: number;
  /** True if an earlier try may have committed some of these ids: they must not be written twice. */
  readonly mayBeStored: boolean;
  readonly idempotencyTtlMs: number;
  /** The process's time. Keys are kept from then on, or from the store's time if that is later. Absent: the store's time. */
  readonly now?: number;
  /** False: expired keys still count, because the clock may be wrong. Default true. */
  readonly mayExpireKeys?: boolean;
  /** The outbox rows of these events, deleted by the same commit. Null if the events do not come from the outbox. */
  readonly outboxSeqs: readonly string[] | null;
  /** True: `outboxSeqs` are parked Kafka records, not rows of the outbox. */
  readonly fromParkedRecords?: boolean | undefined;
  /**
   * The Kafka partition that the events come from. The same commit moves its position, and the commit skips records that
   * are stored already. Throws `StoreError` with `fenced` if another process has taken the partition.
   */
  readonly partition?: PartitionMark | undefined;
}

export interface PartitionMark {
  readonly partitionId: number;
  readonly epoch: string;
  /** The offsets of the events, in their order. */
  readonly offsets: readonly string[];
  /** The new position, if this commit stores as many events as `batchEvents`. Otherwise the commit records their offsets. */
  readonly upTo: string;
  readonly batchEvents: number;
}

export type AppendResult =
  /**
   * Endpoints of these tenants have changed since `endpointVersion`, or the store does not know that version. Nothing was
   * written: refresh, match again, append again.
   */
  | { readonly stale: true }
  /** Ids that are not in `written` were stored by an earlier try, or lost their idempotency key to another event. */
  | { readonly stale: false; readonly written: ReadonlySet<Uuid> | 'all' };

/** The event that holds an idempotency key. */
export interface KeyHolder {
  readonly eventId: Uuid;
  readonly fingerprint: Buffer;
  /** How many deliveries that event has, without those that were skipped when it was accepted. */
  readonly deliveries: number;
  /** Why the event has no deliveries. Null: it has some, or a release that did not record the reason stored it. */
  readonly unmatchedReason: UnmatchedReason | null;
  readonly type: string;
}

export interface IdempotencyKey {
  readonly tenant: string;
  readonly key: string;
}

/** Key of the map that `findKeyHolders` returns. */
export const idempotencyKeyName = (tenant: string, key: string): string => `${tenant}\n${key}`;

export interface EventStore {
  /**
   * Writes all events and deliveries of the batch in one commit, or none. Order within the batch is the order of
   * acceptance. An event whose idempotency key belongs to another event is left out. The commit also stores the
   * endpoints of `unwritten`, with the acceptance number that their FIFO deliveries will have. Throws `StoreError`.
   */
  append(events: readonly EventRecord[], options: AppendOptions): Promise<AppendResult>;

  /**
   * Returns the holders of these idempotency keys, by `idempotencyKeyName`. Keys that are free are missing. An expired
   * key keeps its holder until another event takes it or the store removes it.
   */
  findKeyHolders(keys: readonly IdempotencyKey[]): Promise<Map<string, KeyHolder>>;

  /** Creates tenants that do not exist yet. */
  ensureTenants(names: readonly string[]): Promise<void>;

  /** Creates the storage that covers ids made from `oldestMs` to `newestMs`. Called after `missing_partition`. */
  ensurePartitions(idTimes: IdTimes): Promise<void>;

  /** Returns the time of the store's clock in milliseconds since the epoch, which all processes share. */
  now(): Promise<number>;
}

/** The times in the ids of events, in milliseconds since the epoch. */
export interface IdTimes {
  readonly oldestMs: number;
  readonly newestMs: number;
}

export interface EventLookup {
  /** Loads events with their payloads. Events that do not exist (any more) are missing from the map. */
  load(ids: readonly Uuid[]): Promise<Map<Uuid, EventContent>>;
}
