/**
 * Loads waiting deliveries from the store into lanes that have room. Many lanes share a round trip. Only one read runs at
 * a time; requests that arrive meanwhile are part of the next one.
 *
 * The store assigns acceptance numbers before the commit, so a delivery may become visible after others with higher
 * numbers. A read therefore looks back as far as a commit usually takes, a sweep looks back further, and a new lane or a
 * FIFO lane is read from the beginning.
 */
import type { Clock } from '../domain/clock.ts';
import type { LaneReader, LaneRequest, LoadedDelivery, LoadedLane } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import type { Scheduler } from './scheduler.ts';

export interface RefillOptions {
  readonly queue: Pick<LaneReader, 'loadLanes'>;
  readonly clock: Clock;
  readonly budget: LaneBudget;
  readonly scheduler: Pick<Scheduler, 'consider'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

const LANES_PER_READ = 200;
export const LOOK_BACK_MS = 2_000;
/**
 * Longer than a statement that writes deliveries may take (20 s), but not much longer: while an old transaction keeps
 * PostgreSQL from removing dead rows, the read steps over everything that was settled in this time.
 */
const SWEEP_LOOK_BACK_MS = 30_000;
const RETRY_PAUSE_MS = 200;
/**
 * Extra time for a request of an earlier owner: it may have been sent a little after its start was recorded, and
 * recording its result takes time. With only half a second, a slow database caused deliveries to be sent twice.
 */
const ON_THE_WIRE_MARGIN_MS = 3_000;

const RETRIES_AHEAD_MS = 5_000;

/** What to load: the next deliveries, just committed ones, ones that may have been missed lately, or everything. */
export type LoadScope = 'more' | 'recent' | 'sweep' | 'all';
/** What to load for a lane. The look back starts at `since`, however long the request waits for an earlier read. */
interface LoadRequest {
  readonly scope: LoadScope;
  readonly since: number;
}
const BREADTH: Record<LoadScope, number> = { more: 0, recent: 1, sweep: 2, all: 3 };

const isUrgent = ({ scope }: LoadRequest): boolean => scope === 'more' || scope === 'recent';

export class Refill {
  readonly #options: RefillOptions;
  readonly #requests = new Map<Lane, LoadRequest>();
  #running: Promise<void> | null = null;
  /** The latest acceptance number at past times, oldest first. */
  readonly #marks: { at: number; seq: number }[] = [];
  #stopped = false;

  constructor(options: RefillOptions) {
    this.#options = options;
  }

  /** Records that `seq` is the latest acceptance number in the store now. */
  markSeq(seq: number): void {
    const at = this.#options.clock.monotonic();
    // One less: a sequence that was never used returns 1, like one that was used once.
    this.#marks.push({ at, seq: seq - 1 });
    while (this.#marks.length > 2 && this.#marks[1]!.at < at - SWEEP_LOOK_BACK_MS) this.#marks.shift();
  }

  /** The store was replaced: its acceptance numbers may be lower than those that were marked. */
  forgetMarks(): void {
    this.#marks.length = 0;
  }

  /** Loads the lane with the next read. */
  request(lane: Lane, scope: LoadScope): void {
    if (this.#stopped || lane.isClosed) return;
    this.#merge(lane, { scope, since: this.#options.clock.monotonic() });
    this.#startRead();
  }

  /**
   * Loads more deliveries before the lane runs out. A lane that may not send gets just enough for a probe. Returns when
   * to call this again because retries in the store become due. Infinity: not before the lane changes.
   */
  loadIfLow(lane: Lane, now: number): number {
    if (lane.readProgress.isLoading || !lane.endpoint.enabled || lane.endpoint.deleted)
      return Number.POSITIVE_INFINITY;
    const { budget } = this.#options;
    const threshold = lane.isFlowing && budget.hasRoom ? budget.laneItems / 2 : 1;
    const needsFresh = lane.readProgress.hasMoreFresh && lane.queuedFresh < threshold;
    // A FIFO lane has no retry queue: retries wait at its head.
    const retryHorizon = lane.fifo ? Number.POSITIVE_INFINITY : lane.readProgress.retryHorizon;
    const needsRetriesAt = retryHorizon - RETRIES_AHEAD_MS;
    if (needsRetriesAt <= now && lane.queuedRetries >= threshold) lane.dropRetriesBeyondHorizon();
    const needsRetries = needsRetriesAt <= now && lane.queuedRetries < threshold;
    if (!needsFresh && !needsRetries)
      return needsRetriesAt <= now ? Number.POSITIVE_INFINITY : needsRetriesAt;
    this.request(lane, 'more');
    return Number.POSITIVE_INFINITY;
  }

  #merge(lane: Lane, request: LoadRequest): void {
    const before = this.#requests.get(lane);
    if (before === undefined) this.#requests.set(lane, request);
    else if (BREADTH[before.scope] < BREADTH[request.scope] || request.since < before.since) {
      const scope = BREADTH[before.scope] < BREADTH[request.scope] ? request.scope : before.scope;
      this.#requests.set(lane, { scope, since: Math.min(before.since, request.since) });
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#requests.clear();
    await this.#running;
  }

  #startRead(): void {
    if (this.#running !== null || this.#requests.size === 0 || this.#stopped) return;
    // In the next microtask: lanes that are woken together are read together.
    this.#running = Promise.resolve()
      .then(() => this.#readBatch())
      .catch(async (error) => {
        this.#options.onProblem('read waiting deliveries', error);
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_PAUSE_MS, resolve));
      })
      .finally(() => {
        this.#running = null;
        this.#startRead();
      });
  }

  async #readBatch(): Promise<void> {
    const batch = this.#nextBatch();
    if (batch.length === 0) return;
    const { queue, budget, scheduler } = this.#options;
    const limit = Math.max(1, Math.min(budget.laneItems, Math.ceil(budget.freeItems / batch.length)));
    const requests = batch.map(([lane, request]) => this.#toLaneRequest(lane, request, limit));
    for (const [lane] of batch) lane.readProgress.begin();
    try {
      const answers = await queue.loadLanes(requests);
      for (const [index, [lane]] of batch.entries())
        this.#addLoaded(lane, requests[index]!, answers.get(lane.id)!);
    } catch (error) {
      for (const [lane, request] of batch) this.#merge(lane, request);
      throw error;
    } finally {
      for (const [lane] of batch) lane.readProgress.end();
    }
    // Only after `end`: a lane that is still loading would not request deliveries that it missed during the read.
    for (const [lane] of batch) scheduler.consider(lane);
  }

  /** Urgent requests first: a sweep over thousands of lanes must not delay a new event. */
  #nextBatch(): [Lane, LoadRequest][] {
    const batch: [Lane, LoadRequest][] = [];
    for (const isIncluded of [isUrgent, () => true]) {
      for (const [lane, request] of this.#requests) {
        if (batch.length === LANES_PER_READ) return batch;
        if (lane.isClosed) this.#requests.delete(lane);
        else if (isIncluded(request)) {
          this.#requests.delete(lane);
          batch.push([lane, request]);
        }
      }
    }
    return batch;
  }

  /**
   * How many deliveries of each kind a lane may hold. A lane that does not send needs only candidates for a probe. A FIFO
   * lane always loads all it can, because a request of an earlier owner may not be at its head.
   */
  #maxQueued(lane: Lane): number {
    const { laneItems } = this.#options.budget;
    return lane.isFlowing || lane.fifo ? laneItems : Math.min(2, laneItems);
  }

  #toLaneRequest(lane: Lane, { scope, since }: LoadRequest, limit: number): LaneRequest {
    const now = this.#options.clock.now();
    const waitedMs = this.#options.clock.monotonic() - since;
    const next = lane.readProgress.hasMoreFresh ? lane.readProgress.freshCursor : Number.POSITIVE_INFINITY;
    const maxQueued = this.#maxQueued(lane);
    const room = Math.max(
      0,
      maxQueued - Math.min(lane.queuedFresh, lane.fifo ? maxQueued : lane.queuedRetries),
    );
    // Deliveries in memory are returned too: ask for enough to get past them.
    const max = Math.max(1, Math.min(limit, room) + lane.size);
    const all = { endpointId: lane.id, freshAfter: 0, dueFrom: lane.fifo ? null : 0, limit: max };
    if (lane.fifo || scope === 'all') return all;
    switch (scope) {
      case 'more':
        return {
          ...all,
          freshAfter: Math.min(next, this.seqBefore(LOOK_BACK_MS)),
          dueFrom: lane.readProgress.retryHorizon,
        };
      case 'recent':
        return {
          ...all,
          freshAfter: Math.min(next, this.seqBefore(LOOK_BACK_MS + waitedMs)),
          dueFrom: Math.min(lane.readProgress.retryHorizon, now - LOOK_BACK_MS - waitedMs),
        };
      case 'sweep':
        return {
          ...all,
          freshAfter: Math.min(next, this.seqBefore(SWEEP_LOOK_BACK_MS + waitedMs)),
          dueFrom: Math.min(lane.readProgress.retryHorizon, now - SWEEP_LOOK_BACK_MS - waitedMs),
        };
    }
  }

  /** The latest acceptance number `ms` ago. 0 if it is not known. */
  seqBefore(ms: number): number {
    const at = this.#options.clock.monotonic() - ms;
    let seq = 0;
    for (const mark of this.#marks) {
      if (mark.at > at) break;
      seq = mark.seq;
    }
    return seq;
  }

  #addLoaded(lane: Lane, request: LaneRequest, answer: LoadedLane): void {
    if (lane.isClosed || lane.readProgress.isStale) return;
    if (request.freshAfter !== null)
      this.#addLoadedFresh(lane, request.freshAfter, request.limit, answer.fresh);
    if (request.dueFrom !== null) this.#addLoadedRetries(lane, request.dueFrom, request.limit, answer.due);
  }

  #addLoadedFresh(lane: Lane, after: number, limit: number, rows: readonly LoadedDelivery[]): void {
    let cursor = after;
    for (const row of rows) {
      // Full: the rest stays in the store. A FIFO lane takes late deliveries even if it is full, to put them in order.
      if (!lane.fifo && lane.queuedFresh >= this.#maxQueued(lane) && !lane.has(row.id))
        return lane.readProgress.recordFresh(cursor, false);
      lane.addFresh(toItem(row, lane, this.#options.clock.now()));
      cursor = row.seq;
    }
    lane.readProgress.recordFresh(cursor, rows.length < limit);
  }

  #addLoadedRetries(lane: Lane, from: number, limit: number, rows: readonly LoadedDelivery[]): void {
    for (const row of rows) {
      if (lane.queuedRetries >= this.#maxQueued(lane) && !lane.has(row.id)) {
        lane.readProgress.recordRetries(from, row.dueAt ?? 0, false);
        return lane.readProgress.leaveRetryInStore(row.dueAt ?? 0);
      }
      lane.addRetry(toItem(row, lane, this.#options.clock.now()));
    }
    lane.readProgress.recordRetries(from, rows.at(-1)?.dueAt ?? 0, rows.length < limit);
  }
}

/** Makes a delivery of the lane from its stored row. */
export function toItem(row: LoadedDelivery, lane: Lane, now: number): LaneItem {
  // A start in the future is from before the database's clock stepped back.
  const deadline = Math.min(row.startedAt ?? 0, now) + lane.endpoint.timeoutMs + ON_THE_WIRE_MARGIN_MS;
  return {
    delivery: row,
    event: null,
    state: 'queued',
    isProbe: false,
    notBefore: row.startedAt === null ? 0 : deadline,
    crashes: row.carefulStarts,
  };
}
