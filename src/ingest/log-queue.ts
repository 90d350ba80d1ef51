/**
 * Appends pending events to the log (`POSTHORN_BACKBONE=kafka`).
 *
 *   pending ──▶ lane of its partition ──▶ appended, answered
 *      │                ▲      │ the log does not answer: append the same ids again; too long: 503
 *      │ has a key      │ claimed, or the holder of the key is not stored yet: append under the id of the holder
 *      └──▶ claims ─────┤
 *                       ├ the holder is stored: answer with it, or 409
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
import type { ClaimHolder, ClosedTenants, EventLog, KeyClaim, KeyClaims } from '../ports/event-log.ts';
import { idempotencyKeyName } from '../ports/event-store.ts';
import type { AcceptObservers } from './accept-observers.ts';
import { type AcceptQueue, bytesOf } from './accept-queue.ts';
import { matchFirst } from './match-first.ts';
import { type AcceptAnswer, answerWithHolder, type PendingEvent } from './pending-event.ts';
import { claimFailed, logDidNotAnswer, logIsUnavailable } from './store-problems.ts';
import type { Subscriptions } from './subscriptions.ts';

export interface LogQueueOptions {
  readonly log: EventLog;
  readonly claims: KeyClaims;
  readonly closedTenants: ClosedTenants;
  readonly subscriptions: Pick<Subscriptions, 'match' | 'explainUnmatched' | 'takeWork'>;
  readonly observers: Pick<AcceptObservers, 'onRepeated'>;
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
  /** How many events of a tenant wait for claims. */
  readonly #claiming = new Map<string, number>();
  readonly #lanes = new Map<number, Batcher<LaneItem>>();
  #closed: ReadonlySet<string> = new Set();

  constructor(options: LogQueueOptions) {
    this.#options = options;
    const { batchRows: maxItems, batchBytes: maxBytes } = options;
    this.#claims = new Batcher<PendingEvent>({
      maxItems,
      maxBytes,
      bytesOf: ({ event }) => bytesOf(event),
      write: (batch) => this.#claim(batch),
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
    if (this.#closed.has(tenant)) return item.reject(tenantBeingDeleted(tenant));
    const claiming = this.#claiming.get(tenant) ?? 0;
    if (idempotencyKey === null && claiming === 0) return this.#addToLane(item, false);
    this.#claiming.set(tenant, claiming + 1);
    this.#claims.add(item);
  }

  async waitUntilIdle(): Promise<void> {
    await this.#claims.waitUntilIdle();
    for (const lane of this.#lanes.values()) await lane.waitUntilIdle();
  }

  #addToLane(item: PendingEvent, isRepeated: boolean): void {
    const { partitions } = this.#options.log;
    if (partitions === null) return item.reject(logIsUnavailable());
    this.#laneOf(crc32(item.event.tenant) % partitions).add({ item, isRepeated });
  }

  #laneOf(partition: number): Batcher<LaneItem> {
    const known = this.#lanes.get(partition);
    if (known !== undefined) return known;
    const { batchRows, batchBytes, onBatchWritten } = this.#options;
    const lane = new Batcher<LaneItem>({
      maxItems: batchRows,
      maxBytes: Math.min(batchBytes, MAX_BATCH_BYTES),
      bytesOf: ({ item }) => recordBytesOf(item.event),
      write: (batch) => this.#append(partition, batch),
      onWritten: onBatchWritten,
    });
    this.#lanes.set(partition, lane);
    return lane;
  }

  /** Appends the batch, again and again, until the log confirms it. The outcome of a failed try is unknown, so each try appends all events. */
  async #append(partition: number, batch: readonly LaneItem[]): Promise<void> {
    const { log, clock } = this.#options;
    let pending = batch;
    for (;;) {
      try {
        await log.append(
          partition,
          pending.map(({ item }) => ({ ...item.event, id: item.id })),
        );
        return await this.#answer(pending);
      } catch (error) {
        pending = this.#rejectOverdue(pending, logDidNotAnswer(error));
      }
      if (pending.length === 0) return;
      await new Promise<void>((resolve) => void clock.after(RETRY_PAUSE_MS, resolve));
    }
  }

  #rejectOverdue(batch: readonly LaneItem[], problem: Problem): readonly LaneItem[] {
    const { clock, giveUpAfterMs } = this.#options;
    const oldest = clock.monotonic() - giveUpAfterMs;
    return batch.filter(({ item }) => {
      if (item.receivedAt > oldest) return true;
      item.reject(problem);
      return false;
    });
  }

  /** Answers with the number of deliveries by this process's endpoints. The event is matched again, with current endpoints, when it is stored. */
  async #answer(batch: readonly LaneItem[]): Promise<void> {
    const items = batch.map(({ item }) => item);
    const matched = await matchFirst(items, this.#options.subscriptions, Number.POSITIVE_INFINITY);
    for (const [index, { item, isRepeated }] of batch.entries())
      item.resolve(this.#toAnswer(item, matched[index]!, isRepeated));
  }

  #toAnswer({ id, event }: PendingEvent, matched: readonly Endpoint[], isRepeated: boolean): AcceptAnswer {
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

  async #claim(batch: readonly PendingEvent[]): Promise<void> {
    const { claims, clock, idempotencyTtlMs } = this.#options;
    const wanted = new Map<string, KeyClaim>();
    for (const { event, id, fingerprint } of batch) {
      const { tenant, idempotencyKey: key } = event;
      if (key === null) continue;
      const name = idempotencyKeyName(tenant, key);
      if (!wanted.has(name)) wanted.set(name, { tenant, key, eventId: id, fingerprint: fingerprint! });
    }
    let holders: ReadonlyMap<string, ClaimHolder> = new Map();
    let failure: Problem | null = null;
    try {
      if (wanted.size > 0)
        holders = await claims.claim([...wanted.values()], {
          idempotencyTtlMs,
          now: latestNowOf(clock),
          mayExpireKeys: clock.isSteady ?? true,
        });
    } catch (error) {
      failure = claimFailed(error);
    }
    for (const item of batch) {
      const { tenant, idempotencyKey: key } = item.event;
      this.#countClaimed(tenant);
      if (key === null) this.#addToLane(item, false);
      else if (failure !== null) item.reject(failure);
      else this.#continue(item, holders.get(idempotencyKeyName(tenant, key))!);
    }
  }

  #continue(item: PendingEvent, holder: ClaimHolder): void {
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
