/**
 * Appends pending events to the log (`POSTHORN_BACKBONE=kafka`).
 *
 *   pending ──▶ lane of its partition ──▶ appended, answered
 *      │                ▲      │ the log does not answer: append the same ids again; too long: 503
 *      │                │      │ the batch is too large for the log: bisect, until only the event at fault gets 413
 *      │                │      └ large fan-out, and the tenant has too many unwritten deliveries: 429 (unwritten-watch.ts)
 *      │ has a key      │ claimed, or the holder of the key is not stored yet: append under the id of the holder
 *      └──▶ claims ─────┤
 *                       ├ the holder is stored: answer with it, or 409
 *                       ├ another transaction has locked a key: claim again beside the others (blocked-path.ts), then bisect; too long: 503
 *                       └ the store does not answer: 503
 *
 * A lane has one append at a time, so the events of a tenant keep their order. An event without a key waits for the claims of
 * its tenant, for the same reason.
 */
import { crc32 } from 'node:zlib';
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import { type Clock, latestNowOf } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { NewEvent } from '../domain/event.ts';
import { timeOfId } from '../domain/ids.ts';
import { type Problem, tenantBeingDeleted } from '../domain/problem.ts';
import {
  BatchTooLargeError,
  type ClaimHolder,
  type ClosedTenantList,
  type ClosedTenants,
  type EventLog,
  type KeyClaim,
  type KeyClaims,
} from '../ports/event-log.ts';
import { idempotencyKeyName } from '../ports/event-store.ts';
import { storeFailureOf } from '../ports/store-error.ts';
import type { AcceptObservers } from './accept-observers.ts';
import { type AcceptQueue, bytesOf } from './accept-queue.ts';
import { BlockedPath } from './blocked-path.ts';
import { matchFirst } from './match-first.ts';
import { type AcceptAnswer, answerWithHolder, keyNamesOf, type PendingEvent } from './pending-event.ts';
import { claimFailed, logDidNotAnswer, logIsUnavailable, tooLargeForLog } from './store-problems.ts';
import type { Subscriptions } from './subscriptions.ts';
import type { UnwrittenWatch } from './unwritten-watch.ts';

export interface LogQueueOptions {
  readonly log: EventLog;
  readonly claims: KeyClaims;
  readonly closedTenants: ClosedTenants;
  readonly subscriptions: Pick<Subscriptions, 'match' | 'explainUnmatched' | 'takeWork'>;
  readonly observers: Pick<AcceptObservers, 'onRepeated'>;
  readonly unwritten: Pick<UnwrittenWatch, 'findProblem'>;
  readonly clock: Clock;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly idempotencyTtlMs: number;
  /** An event that could not be appended within this time is answered with 503. */
  readonly giveUpAfterMs: number;
  /** Called after each batch, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
}

/** An event in a lane. It is appended under `item.id`, which may be the id of an earlier request. */
interface LaneItem {
  readonly item: PendingEvent;
  /** True: an earlier request with the same idempotency key has claimed the id. */
  readonly isRepeated: boolean;
  readonly closedTenantsReadAt: number | null;
}

interface MatchedItem extends LaneItem {
  /** The endpoints that this process knows. The event is matched with current endpoints when it is stored. */
  readonly endpoints: readonly Endpoint[];
}

const RETRY_PAUSE_MS = 100;
/** A batch is one record batch of Kafka. The topic must take twice as much (`max.message.bytes`). */
const MAX_BATCH_BYTES = 2 ** 19;
/** An upper bound for the other fields of a record: id, tenant, type, key, trace. */
const RECORD_OVERHEAD_BYTES = 1_024;
const ENDPOINT_ID_BYTES = 40;

function recordBytesOf({ data, headers, channels, endpointIds }: NewEvent): number {
  let bytes = data.length + RECORD_OVERHEAD_BYTES + ENDPOINT_ID_BYTES * (endpointIds?.length ?? 0);
  for (const channel of channels) bytes += channel.length;
  if (headers !== null)
    for (const [name, value] of Object.entries(headers)) bytes += name.length + value.length;
  return bytes;
}

export class LogQueue implements AcceptQueue {
  readonly isStore = false;
  readonly #options: LogQueueOptions;
  readonly #claims: Batcher<PendingEvent>;
  /** Events whose keys another transaction has locked, perhaps. */
  readonly #blocked: BlockedPath;
  /** How many events of a tenant wait for claims. */
  readonly #claiming = new Map<string, number>();
  readonly #lanes = new Map<number, Batcher<LaneItem>>();
  #closed: ClosedTenantList | null = null;

  constructor(options: LogQueueOptions) {
    this.#options = options;
    const { batchRows: maxItems, batchBytes: maxBytes } = options;
    this.#claims = new Batcher<PendingEvent>({
      maxItems,
      maxBytes,
      bytesOf: ({ event }) => bytesOf(event),
      divert: (batch) => this.#divertBlocked(batch),
      write: (batch) => this.#claim(batch),
    });
    this.#blocked = new BlockedPath({
      clock: options.clock,
      bytesOf: ({ event }) => bytesOf(event),
      write: (batch) => this.#claimAgain(batch),
    });
  }

  get waitedMs(): number {
    const waited = [...this.#lanes.values()].map((lane) => lane.waitedMs);
    return Math.max(this.#claims.waitedMs, ...waited);
  }

  /** Call this when a tenant was changed, and regularly. Throws `StoreError`. */
  async reloadClosedTenants(): Promise<void> {
    this.#closed = await this.#options.closedTenants.load();
  }

  add(item: PendingEvent): void {
    const { tenant, idempotencyKey } = item.event;
    if (this.#closed?.tenants.has(tenant)) return item.reject(tenantBeingDeleted(tenant));
    const claiming = this.#claiming.get(tenant) ?? 0;
    if (idempotencyKey === null && claiming === 0) return this.#addToLane(item, false);
    this.#claiming.set(tenant, claiming + 1);
    this.#claims.add(item);
  }

  async waitUntilIdle(): Promise<void> {
    await this.#claims.waitUntilIdle();
    await this.#blocked.waitUntilIdle();
    for (const lane of this.#lanes.values()) await lane.waitUntilIdle();
  }

  #addToLane(item: PendingEvent, isRepeated: boolean): void {
    const { partitions } = this.#options.log;
    if (partitions === null) return item.reject(logIsUnavailable());
    const closedTenantsReadAt = this.#closed?.readAt ?? null;
    this.#laneOf(crc32(item.event.tenant) % partitions).add({ item, isRepeated, closedTenantsReadAt });
  }

  #laneOf(partition: number): Batcher<LaneItem> {
    const known = this.#lanes.get(partition);
    if (known !== undefined) return known;
    const { batchRows, batchBytes, onBatchWritten } = this.#options;
    const lane = new Batcher<LaneItem>({
      maxItems: batchRows,
      maxBytes: Math.min(batchBytes, MAX_BATCH_BYTES),
      bytesOf: ({ item }) => recordBytesOf(item.event),
      write: async (batch) => this.#append(partition, this.#refuseLarge(await this.#match(batch))),
      onWritten: onBatchWritten,
    });
    this.#lanes.set(partition, lane);
    return lane;
  }

  async #match(batch: readonly LaneItem[]): Promise<readonly MatchedItem[]> {
    const items = batch.map(({ item }) => item);
    const matched = await matchFirst(items, this.#options.subscriptions, Number.POSITIVE_INFINITY);
    return batch.map((each, index) => ({ ...each, endpoints: matched[index]! }));
  }

  /** Rejects large fan-outs of tenants that have too many unwritten deliveries. Returns the others. */
  #refuseLarge(batch: readonly MatchedItem[]): readonly MatchedItem[] {
    return batch.filter(({ item, endpoints }) => {
      const problem = this.#options.unwritten.findProblem(item.event.tenant, endpoints.length);
      if (problem !== null) item.reject(problem);
      return problem === null;
    });
  }

  /** Appends the batch, again and again, until the log confirms it. The outcome of a failed try is unknown, so each try appends all events. */
  async #append(partition: number, batch: readonly MatchedItem[]): Promise<void> {
    const { log, clock } = this.#options;
    let pending = batch;
    while (pending.length > 0) {
      try {
        await log.append(
          partition,
          pending.map(({ item, closedTenantsReadAt }) => ({
            ...item.event,
            id: item.id,
            closedTenantsReadAt,
          })),
        );
        for (const each of pending) each.item.resolve(this.#toAnswer(each));
        return;
      } catch (error) {
        if (error instanceof BatchTooLargeError) return this.#appendHalves(partition, pending, error);
        const isInTime = this.#rejectOverdue(logDidNotAnswer(error));
        pending = pending.filter(({ item }) => isInTime(item));
      }
      if (pending.length > 0) await new Promise<void>((resolve) => void clock.after(RETRY_PAUSE_MS, resolve));
    }
  }

  async #appendHalves(
    partition: number,
    batch: readonly MatchedItem[],
    error: BatchTooLargeError,
  ): Promise<void> {
    if (batch.length === 1) return batch[0]!.item.reject(tooLargeForLog(error));
    const middle = batch.length >> 1;
    await this.#append(partition, batch.slice(0, middle));
    await this.#append(partition, batch.slice(middle));
  }

  /** Returns a function that returns true, or rejects the event with `problem` if it has waited too long. */
  #rejectOverdue(problem: Problem): (item: PendingEvent) => boolean {
    const { clock, giveUpAfterMs } = this.#options;
    const oldest = clock.monotonic() - giveUpAfterMs;
    return (item) => {
      if (item.receivedAt > oldest) return true;
      item.reject(problem);
      return false;
    };
  }

  #toAnswer({ item: { id, event }, endpoints: matched, isRepeated }: MatchedItem): AcceptAnswer {
    const deliveries = matched.filter(({ enabled }) => enabled).length;
    return {
      id,
      type: event.type,
      tenant: event.tenant,
      createdAt: timeOfId(id),
      deliveries,
      unmatchedReason:
        deliveries > 0 || isRepeated ? null : this.#options.subscriptions.explainUnmatched(event, matched),
      duplicate: isRepeated,
    };
  }

  /** Moves events to the blocked path if others wait there for the same key. Returns the others. */
  #divertBlocked(batch: PendingEvent[]): PendingEvent[] {
    if (this.#blocked.waitingItems === 0) return batch;
    return batch.filter((item) => {
      const lock = keyNamesOf([item]).find((name) => this.#blocked.isBlocked(name));
      if (lock === undefined) return true;
      this.#countClaimed(item.event.tenant);
      this.#blocked.addEvent(item, false, lock);
      return false;
    });
  }

  async #claim(batch: readonly PendingEvent[]): Promise<void> {
    const keyed = batch.filter(({ event }) => event.idempotencyKey !== null);
    const result = await this.#tryClaim(keyed);
    const isBlocked = storeFailureOf(result) === 'conflict';
    if (isBlocked) this.#blocked.addBatch(keyed, false, keyNamesOf(keyed));
    for (const item of batch) {
      this.#countClaimed(item.event.tenant);
      if (item.event.idempotencyKey === null) this.#addToLane(item, false);
      else if (!isBlocked) this.#continue(item, result);
    }
  }

  /** Claims the keys of events that may be locked: all at once, because a deadlock has passed, then in halves. */
  async #claimAgain(batch: readonly PendingEvent[]): Promise<void> {
    const result = await this.#tryClaim(batch);
    if (storeFailureOf(result) !== 'conflict') {
      for (const item of batch) this.#continue(item, result);
      return;
    }
    const inTime = batch.filter(this.#rejectOverdue(claimFailed(result)));
    if (inTime.length === 0) return;
    if (inTime.length === 1) return this.#blocked.addEvent(inTime[0]!, false, keyNamesOf(inTime)[0]!);
    const middle = inTime.length >> 1;
    for (const half of [inTime.slice(0, middle), inTime.slice(middle)])
      this.#blocked.addBatch(half, false, keyNamesOf(half));
  }

  /** Returns the holders of the keys, or the error. */
  async #tryClaim(keyed: readonly PendingEvent[]): Promise<ReadonlyMap<string, ClaimHolder> | Error> {
    const { claims, clock, idempotencyTtlMs } = this.#options;
    const wanted = new Map<string, KeyClaim>();
    for (const { event, id, fingerprint } of keyed) {
      const { tenant, idempotencyKey } = event;
      const key = idempotencyKey!;
      const name = idempotencyKeyName(tenant, key);
      if (!wanted.has(name)) wanted.set(name, { tenant, key, eventId: id, fingerprint: fingerprint! });
    }
    if (wanted.size === 0) return new Map();
    try {
      return await claims.claim([...wanted.values()], {
        idempotencyTtlMs,
        now: latestNowOf(clock),
        mayExpireKeys: clock.isSteady ?? true,
      });
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #continue(item: PendingEvent, claimed: ReadonlyMap<string, ClaimHolder> | Error): void {
    if (claimed instanceof Error) return item.reject(claimFailed(claimed));
    const { tenant, idempotencyKey } = item.event;
    const holder = claimed.get(idempotencyKeyName(tenant, idempotencyKey!))!;
    if (holder.eventId === item.id) return this.#addToLane(item, false);
    this.#options.observers.onRepeated();
    const isSame = holder.fingerprint.equals(item.fingerprint!);
    if (holder.isClaimed && isSame) this.#addToLane({ ...item, id: holder.eventId }, true);
    else answerWithHolder(item, holder);
  }

  #countClaimed(tenant: string): void {
    const left = this.#claiming.get(tenant)! - 1;
    if (left === 0) this.#claiming.delete(tenant);
    else this.#claiming.set(tenant, left);
  }
}
