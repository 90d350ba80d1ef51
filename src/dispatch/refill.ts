/**
 * Loads waiting deliveries from the store into lanes that have room. Many lanes share a round trip. Two reads run at the
 * same time: one for urgent lanes and one for all others, so that backlogs and sweeps never delay a new event. Requests
 * that arrive meanwhile are part of the next read.
 *
 * The store assigns acceptance numbers before the commit, so a delivery may become visible after others with higher
 * numbers. A read therefore looks back as far as a commit usually takes, a sweep looks back further, and a new lane or a
 * FIFO lane is read from the beginning. A lane with a backlog is read many times a second, and would load again most of
 * what it already holds. Such a lane looks back every half second, and otherwise continues after the last row it got.
 */
import type { Clock } from '../domain/clock.ts';
import type { LaneReader, LaneRequest, LoadedDelivery, LoadedLane } from '../ports/delivery-queue.ts';
import type { Lane, LaneItem } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import { type LoadRequest, LoadRequests, type LoadScope, type Urgency } from './load-requests.ts';
import type { Scheduler } from './scheduler.ts';
import { correctDelivery } from './stored-times.ts';
import { needsBacklog, usefulItems } from './useful-items.ts';

export type { LoadScope };

export interface RefillOptions {
  readonly queue: Pick<LaneReader, 'loadLanes'>;
  readonly clock: Clock;
  readonly budget: LaneBudget;
  readonly scheduler: Pick<Scheduler, 'consider'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

const LANES_PER_READ = 200;
/** A read takes no more lanes once it may return this many rows. */
const ROWS_PER_READ = 4_000;
/** The first read of a lane asks for this many rows, because most lanes have few or none. */
const FIRST_ROWS = 20;
export const LOOK_BACK_MS = 2_000;
/** How often the reads of a lane with a backlog look back. */
const LOOK_BACK_EVERY_MS = 500;
/**
 * Longer than a statement that writes deliveries may take (20 s), but not much longer: while an old transaction keeps
 * PostgreSQL from removing dead rows, the read steps over everything that was settled in this time.
 */
const SWEEP_LOOK_BACK_MS = 30_000;
/** Renewals of the lease mark the acceptance number three times a second. An older last mark means that the store does not answer. */
const MAX_MARK_AGE_MS = 5_000;
const RETRY_PAUSE_MS = 200;
/**
 * Extra time for a request of an earlier owner: it may have been sent a little after its start was recorded, and
 * recording its result takes time. With only half a second, a slow database caused deliveries to be sent twice.
 */
export const ON_THE_WIRE_MARGIN_MS = 3_000;

const RETRIES_AHEAD_MS = 5_000;

type Reader = 'urgent' | 'other';
/** Which requests a reader takes, in this order. */
const READS: Record<Reader, readonly Urgency[]> = { urgent: ['urgent'], other: ['normal', 'background'] };

export class Refill {
  readonly #options: RefillOptions;
  readonly #requests = new LoadRequests();
  readonly #running: Record<Reader, Promise<void> | null> = { urgent: null, other: null };
  /** The latest acceptance number at past times, oldest first. */
  readonly #marks: { at: number; seq: number }[] = [];
  /** Of lanes with a backlog: when a read last looked back, and whether a read without a look-back has reached the last row. */
  readonly #lookBacks = new WeakMap<Lane, { readonly at: number; readonly isAtEnd: boolean }>();
  #isStopped = false;

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

  /**
   * True if no acceptance number was assigned for as long as a sweep looks back: every delivery that was committed is
   * visible, unless it was replayed in place.
   */
  get isStoreQuiet(): boolean {
    const [first] = this.#marks;
    const last = this.#marks.at(-1);
    if (first === undefined || last === undefined) return false;
    const now = this.#options.clock.monotonic();
    const isNew = now - last.at < MAX_MARK_AGE_MS;
    // A sequence that was never used returns the same number as one that was used once.
    const isUsed = last.seq > 0;
    return isUsed && isNew && first.seq === last.seq && now - first.at >= SWEEP_LOOK_BACK_MS;
  }

  /** Loads the lane with the next read. */
  request(lane: Lane, scope: LoadScope): void {
    if (this.#isStopped || lane.isClosed) return;
    this.#requests.add(lane, { scope, since: this.#options.clock.monotonic() }, this.#urgencyOf(lane, scope));
    this.#startReads();
  }

  #urgencyOf(lane: Lane, scope: LoadScope): Urgency {
    if (scope === 'sweep' || scope === 'all') return 'background';
    const canSend = lane.isFlowing && lane.inFlight < lane.inFlightLimit && lane.queuedFresh === 0;
    return canSend && !lane.responseTimes.isSlow(this.#options.clock.now()) ? 'urgent' : 'normal';
  }

  /**
   * Loads more deliveries before the lane runs out. A lane that may not send gets just enough for a probe. Returns when
   * to call this again because retries in the store become due. Infinity: not before the lane changes.
   */
  loadIfLow(lane: Lane, now: number): number {
    if (lane.readProgress.isLoading || !lane.endpoint.enabled || lane.endpoint.deleted)
      return Number.POSITIVE_INFINITY;
    const { budget } = this.#options;
    const maxQueued = usefulItems(lane, budget, now);
    // Other lanes need the memory, and this lane cannot use it soon. The deliveries stay in the store.
    if (budget.isTight && Math.max(lane.queuedFresh, lane.queuedRetries) > 2 * maxQueued) lane.clearQueue();
    const threshold = needsBacklog(lane) && budget.hasRoom(lane.size) ? maxQueued / 2 : 1;
    const needsFresh = lane.readProgress.hasMoreFresh && lane.queuedFresh < threshold;
    // A FIFO lane has no retry queue: retries wait at its head.
    const retryHorizon = lane.isFifo ? Number.POSITIVE_INFINITY : lane.readProgress.retryHorizon;
    const needsRetriesAt = retryHorizon - RETRIES_AHEAD_MS;
    if (needsRetriesAt <= now && lane.queuedRetries >= threshold) lane.dropRetriesBeyondHorizon();
    const needsRetries = needsRetriesAt <= now && lane.queuedRetries < threshold;
    if (!needsFresh && !needsRetries)
      return needsRetriesAt <= now ? Number.POSITIVE_INFINITY : needsRetriesAt;
    this.request(lane, 'more');
    return Number.POSITIVE_INFINITY;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#requests.clear();
    await Promise.all([this.#running.urgent, this.#running.other]);
  }

  #startReads(): void {
    this.#startRead('urgent');
    this.#startRead('other');
  }

  #startRead(reader: Reader): void {
    if (this.#running[reader] !== null || !this.#requests.hasAny(READS[reader]) || this.#isStopped) return;
    // In the next microtask: lanes that are woken together are read together.
    this.#running[reader] = Promise.resolve()
      .then(() => this.#readBatch(reader))
      .catch(async (error) => {
        this.#options.onProblem('read waiting deliveries', error);
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_PAUSE_MS, resolve));
      })
      .finally(() => {
        this.#running[reader] = null;
        this.#startReads();
      });
  }

  async #readBatch(reader: Reader): Promise<void> {
    const batch = this.#takeBatch(reader);
    if (batch.length === 0) return;
    const readAt = this.#options.clock.monotonic();
    const requests = batch.map(({ lane, request, rows }) =>
      this.#toLaneRequest(lane, request, rows, batch.length),
    );
    try {
      const answers = await this.#options.queue.loadLanes(requests);
      for (const [index, { lane }] of batch.entries())
        this.#addLoaded(lane, requests[index]!, answers.get(lane.id)!, readAt);
    } catch (error) {
      for (const { lane, request } of batch)
        if (!this.#isStopped) this.#requests.add(lane, request, this.#urgencyOf(lane, request.scope));
      throw error;
    } finally {
      for (const { lane } of batch) {
        lane.readProgress.end();
        this.#requests.release(lane);
      }
    }
    // Only after `end`: a lane that is still loading would not request deliveries that it missed during the read.
    for (const { lane } of batch) this.#options.scheduler.consider(lane);
  }

  #takeBatch(reader: Reader): { lane: Lane; request: LoadRequest; rows: number }[] {
    const batch: { lane: Lane; request: LoadRequest; rows: number }[] = [];
    for (let rows = 0; batch.length < LANES_PER_READ && rows < ROWS_PER_READ; ) {
      const next = this.#requests.take(READS[reader]);
      if (next === undefined) break;
      const [lane, request] = next;
      const wanted = this.#rowsFor(lane);
      rows += wanted;
      lane.readProgress.begin();
      batch.push({ lane, request, rows: wanted });
    }
    return batch;
  }

  /** How many more deliveries of each kind to load. */
  #rowsFor(lane: Lane): number {
    const maxQueued = this.#maxQueued(lane);
    const room = Math.max(
      0,
      maxQueued - Math.min(lane.queuedFresh, lane.isFifo ? maxQueued : lane.queuedRetries),
    );
    // Only a lane that is known to have more deliveries in the store is likely to use all its room.
    const hasBacklog = lane.readProgress.hasMoreFresh && lane.readProgress.freshCursor > 0;
    return hasBacklog || lane.isFifo ? room : Math.min(room, FIRST_ROWS);
  }

  #maxQueued(lane: Lane): number {
    return usefulItems(lane, this.#options.budget, this.#options.clock.now());
  }

  #toLaneRequest(lane: Lane, { scope, since }: LoadRequest, rows: number, lanes: number): LaneRequest {
    const now = this.#options.clock.now();
    if (scope === 'more' && this.#mayContinue(lane, now)) return this.#continueRead(lane, lanes);
    const waitedMs = this.#options.clock.monotonic() - since;
    const lookBackMs = Math.min(LOOK_BACK_MS + this.#sinceLookBack(lane), SWEEP_LOOK_BACK_MS);
    const next = lane.readProgress.hasMoreFresh ? lane.readProgress.freshCursor : Number.POSITIVE_INFINITY;
    // Deliveries in memory are returned too: ask for enough to get past them.
    const limit = Math.min(rows, this.#options.budget.roomFor(lane.size, lanes));
    const max = Math.max(1, limit + lane.size);
    const all = { endpointId: lane.id, freshAfter: 0, dueFrom: lane.isFifo ? null : 0, limit: max };
    if (lane.isFifo || scope === 'all') return all;
    switch (scope) {
      case 'more':
        return {
          ...all,
          freshAfter: Math.min(next, this.seqBefore(lookBackMs)),
          dueFrom: lane.readProgress.retryHorizon,
        };
      case 'recent':
        return {
          ...all,
          freshAfter: Math.min(next, this.seqBefore(lookBackMs + waitedMs)),
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

  /** Returns how long ago a read last looked back. The next look-back also covers this time, because other reads miss late deliveries. */
  #sinceLookBack(lane: Lane): number {
    const last = this.#lookBacks.get(lane);
    return last === undefined ? 0 : this.#options.clock.monotonic() - last.at;
  }

  /** True if the next read need not look back: the lane has a backlog, needs no retries, and looked back just now. */
  #mayContinue(lane: Lane, now: number): boolean {
    const { hasMoreFresh, freshCursor, retryHorizon } = lane.readProgress;
    if (lane.isFifo || !hasMoreFresh || freshCursor === 0 || retryHorizon - RETRIES_AHEAD_MS <= now)
      return false;
    const isKnown = this.#lookBacks.get(lane)?.isAtEnd === false;
    return isKnown && this.#sinceLookBack(lane) < LOOK_BACK_EVERY_MS;
  }

  /** Fresh deliveries after the last one that was read, as many as the lane has room for. */
  #continueRead(lane: Lane, lanes: number): LaneRequest {
    const room = Math.min(
      this.#maxQueued(lane) - lane.queuedFresh,
      this.#options.budget.roomFor(lane.size, lanes),
    );
    return {
      endpointId: lane.id,
      freshAfter: lane.readProgress.freshCursor,
      dueFrom: null,
      limit: Math.max(1, room),
    };
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

  #addLoaded(lane: Lane, request: LaneRequest, answer: LoadedLane, readAt: number): void {
    if (lane.isClosed || lane.readProgress.isStale) return;
    const { freshAfter, dueFrom, limit } = request;
    const hasReachedEnd = answer.fresh.length < limit;
    const hasLookedBack = lane.isFifo || dueFrom !== null;
    // Only a read that looks back can tell that nothing is left.
    if (freshAfter !== null)
      this.#addLoadedFresh(lane, freshAfter, hasReachedEnd && hasLookedBack, answer.fresh);
    if (dueFrom !== null) this.#addLoadedRetries(lane, dueFrom, limit, answer.due);
    if (!lane.isFifo) this.#recordLookBack(lane, hasLookedBack ? readAt : null, hasReachedEnd);
  }

  /** `readAt` null: the read continued after the last row. */
  #recordLookBack(lane: Lane, readAt: number | null, hasReachedEnd: boolean): void {
    const { hasMoreFresh, hasMissedFresh } = lane.readProgress;
    const at = readAt ?? this.#lookBacks.get(lane)?.at;
    if (!hasMoreFresh || at === undefined) this.#lookBacks.delete(lane);
    else this.#lookBacks.set(lane, { at, isAtEnd: readAt === null && hasReachedEnd && !hasMissedFresh });
  }

  #addLoadedFresh(lane: Lane, after: number, isComplete: boolean, rows: readonly LoadedDelivery[]): void {
    let cursor = after;
    if (lane.isFifo && isComplete && lane.queuedFresh > 0) lane.keepOnly(new Set(rows.map(({ id }) => id)));
    const maxQueued = this.#maxQueued(lane);
    for (const row of rows) {
      // Full: the rest stays in the store. A FIFO lane takes late deliveries even if it is full, to put them in order.
      if (!lane.isFifo && lane.queuedFresh >= maxQueued && !lane.has(row.id))
        return lane.readProgress.recordFresh(cursor, false);
      lane.addFresh(toItem(row, lane, this.#options.clock));
      cursor = row.seq;
    }
    lane.readProgress.recordFresh(cursor, isComplete);
  }

  #addLoadedRetries(lane: Lane, from: number, limit: number, rows: readonly LoadedDelivery[]): void {
    for (const row of rows) {
      if (lane.queuedRetries >= this.#maxQueued(lane) && !lane.has(row.id)) {
        lane.readProgress.recordRetries(from, row.dueAt ?? 0, false);
        return lane.readProgress.leaveRetryInStore(row.dueAt ?? 0);
      }
      lane.addRetry(toItem(row, lane, this.#options.clock));
    }
    lane.readProgress.recordRetries(from, rows.at(-1)?.dueAt ?? 0, rows.length < limit);
  }
}

/** Makes a delivery of the lane from its stored row. */
export function toItem(row: LoadedDelivery, lane: Lane, clock: Pick<Clock, 'now' | 'isSteady'>): LaneItem {
  const now = clock.now();
  const adopted = lane.isAdopted(row.id) ? lane.batches.findAdopted(row) : null;
  const startedAt = adopted === null ? row.startedAt : Math.max(adopted.startedAt, row.startedAt ?? 0);
  const delivery = correctDelivery(row, lane.endpoint, now, lane.retryAfterCapMs);
  return {
    delivery: adopted === null ? delivery : { ...delivery, batchId: adopted.id },
    event: null,
    state: 'queued',
    isProbe: false,
    notBefore: startedAt === null ? 0 : deadlineOf(startedAt, lane, clock),
    crashes: row.carefulStarts,
  };
}

/** Until then, a request that an earlier owner started at this time may be on the wire. */
export function deadlineOf(
  startedAt: number,
  { endpoint, earlierRequestsUntil }: Lane,
  clock: Pick<Clock, 'now' | 'isSteady'>,
): number {
  // A start in the future is from before the database's clock stepped back. After a step any start may be recent.
  if (clock.isSteady === false || startedAt > clock.now()) return earlierRequestsUntil;
  return startedAt + endpoint.timeoutMs + ON_THE_WIRE_MARGIN_MS;
}
