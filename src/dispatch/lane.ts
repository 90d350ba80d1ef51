/**
 * The lane of one endpoint, in the worker that owns it. Decides which delivery is sent next and when. Has no I/O and no
 * clock, so that tests can try every order of events.
 *
 * A delivery in a lane is
 *   queued      fresh (never attempted) or a retry (scheduled)
 *   in flight   its request is on the wire and takes one of the endpoint's `max_in_flight` places
 *   unsettled   answered, but the result is not recorded yet
 *
 * Lanes are bounded. Deliveries that do not fit stay in the store, and `readProgress` records that there are more.
 */
import { Breaker } from '../domain/breaker.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { type Endpoint, shardOfLane } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Pace } from '../domain/pace.ts';
import type { LaneState } from '../ports/delivery-queue.ts';
import { backlogOf, type LaneBacklog } from './lane-backlog.ts';
import { batchDueAt, LaneBatches } from './lane-batches.ts';
import type { LaneMemory } from './lane-budget.ts';
import { LaneHistory } from './lane-history.ts';
import { dueTime, type LaneItem, requestDueTime } from './lane-item.ts';
import { LaneQueue } from './lane-queue.ts';
import type { ReadProgress } from './read-progress.ts';
import { areLimitsOutdated, createLimits } from './slow-endpoints.ts';
import { stepClock } from './step-clock.ts';

export type { LaneBacklog, LaneItem };

export type Kind = 'fresh' | 'retry';

/** While both kinds are ready, every fourth turn is for a retry: a stream of new events must not starve retries. */
const FRESH_TURNS = 3;

export class Lane extends LaneHistory {
  readonly id: Uuid;
  readonly shard: number;
  endpoint: Endpoint;
  breaker: Breaker;
  failingSince: number | null;
  /** True if a dead letter blocks this FIFO lane. */
  isBlocked: boolean;
  /** Nothing is sent before this time: `Retry-After` of a 429, or a pause after a failure on this machine. */
  holdUntil = 0;
  /** Until then, requests of an earlier owner of the shard may be on the wire. */
  earlierRequestsUntil = 0;
  retryAfterCapMs = Number.POSITIVE_INFINITY;
  inFlight = 0;
  unsettled = 0;
  /** True once the worker has lost the shard: nothing of this lane may be sent any more. */
  isClosed = false;
  /**
   * True while the lane waits to be moved to the region that its endpoint names now: nothing more is started. What was
   * started before is still sent: the next owner would wait for the deadline of a recorded start.
   */
  isLeaving = false;
  /** True while the shard is suspected to crash workers: one request at a time, each recorded before it is sent. */
  isCareful = false;

  readonly #queue: LaneQueue;
  #pace: Pace | null;
  #probe: LaneItem | null = null;
  /** FIFO: the requested probe. It is sent when it is at the head. */
  #requestedHead: Pick<WaitingDelivery, 'id' | 'attempts'> | null = null;
  #freshInARow = 0;

  constructor(
    endpoint: Endpoint,
    state: Omit<LaneState, 'isNew'>,
    pace: Pace | null,
    memory: LaneMemory = { items: 0, bytes: 0 },
  ) {
    super(state.adaptive == null ? null : createLimits(endpoint, state.adaptive));
    this.id = endpoint.id;
    this.shard = shardOfLane(endpoint);
    this.endpoint = endpoint;
    this.breaker = new Breaker(endpoint.breaker, state.breaker);
    this.failingSince = state.failingSince;
    this.isBlocked = state.blocked;
    this.holdUntil = state.holdUntil ?? 0;
    this.#pace = pace;
    this.#queue = new LaneQueue(this.isFifo, memory);
  }

  get isFifo(): boolean {
    return this.endpoint.ordering === 'fifo';
  }

  get readProgress(): ReadProgress {
    return this.#queue.readProgress;
  }

  /** Deliveries in memory, in any state. */
  get size(): number {
    return this.#queue.size;
  }

  get queuedFresh(): number {
    return this.#queue.fresh.size;
  }

  get queuedRetries(): number {
    return this.#queue.retries.size;
  }

  has(id: Uuid): boolean {
    return this.#queue.has(id);
  }

  /** True if an earlier owner may have a batch with this delivery on the wire. */
  isAdopted(id: Uuid): boolean {
    return this.#queue.adopted?.has(id) ?? false;
  }

  /** Deliveries in flight or unsettled. */
  get underWay(): LaneItem[] {
    return this.#queue.underWay;
  }

  get isIdle(): boolean {
    return this.inFlight + this.unsettled === 0;
  }

  /** The queued deliveries in memory. O(1): read for every lane at each measurement. */
  get backlog(): LaneBacklog {
    return backlogOf(this.#queue);
  }

  /** True if the lane may send anything: owned, enabled, not paused, not blocked by a dead letter. */
  get isActive(): boolean {
    const { endpoint } = this;
    return !this.isClosed && endpoint.enabled && !endpoint.deleted && !endpoint.paused && !this.isBlocked;
  }

  /** True if the lane may start more than probes. */
  get isFlowing(): boolean {
    return this.isActive && !this.isLeaving && this.breaker.allowsTraffic;
  }

  reconfigure(endpoint: Endpoint, pace: Pace | null): void {
    const before = this.endpoint;
    this.endpoint = endpoint;
    this.#queue.setFifo(this.isFifo);
    if (JSON.stringify(before.breaker) !== JSON.stringify(endpoint.breaker)) {
      this.breaker = new Breaker(endpoint.breaker, this.breaker.record);
    }
    if (JSON.stringify(before.rateLimit) !== JSON.stringify(endpoint.rateLimit)) this.#pace = pace;
    if (areLimitsOutdated(before, endpoint)) this.resetAdaptive();
  }

  /** Replaces what the lane knows about the endpoint's health by what the store has. */
  restore(state: LaneState): void {
    this.breaker = new Breaker(this.endpoint.breaker, state.breaker);
    this.failingSince = state.failingSince;
    this.isBlocked = state.blocked;
    if ((state.adaptive ?? null) === null) this.resetAdaptive();
  }

  /** The clock was set by `stepMs`. After a step back the caller loads the lane again. */
  onClockStepped(stepMs: number): void {
    stepClock(this, this.#queue, stepMs);
  }

  /** Queues a fresh delivery. The caller has checked that there is room. Returns false if it is known already. */
  addFresh(item: LaneItem): boolean {
    const isAdded = this.#queue.addFresh(item);
    // Hold the FIFO lane until the previous owner's request has timed out, whatever is at the head by now.
    if (isAdded && this.isFifo) this.holdUntil = Math.max(this.holdUntil, item.notBefore);
    return isAdded;
  }

  /** Queues a scheduled delivery, or moves one that is queued already and has a new due time. */
  addRetry(item: LaneItem): boolean {
    return this.#queue.addRetry(item);
  }

  /** Makes a delivery that was loaded as a requested probe the next one, even while the circuit is open. */
  requestProbe(item: LaneItem): void {
    if (this.isClosed) return;
    if (this.isFifo) this.#requestedHead = item.delivery;
    else this.#queue.request(item);
  }

  /** Forgets all queued deliveries. Those in flight or unsettled stay, and a requested probe. */
  clearQueue(): void {
    this.#queue.clear();
  }

  /** Forgets queued deliveries that have ended in the store. */
  forgetQueued(ids: readonly Uuid[]): void {
    for (const id of ids) this.#queue.forgetQueued(id);
  }

  /** FIFO: forgets deliveries that a full read did not return. They wait behind unwritten slices. */
  keepOnly(loaded: ReadonlySet<Uuid>): void {
    this.#queue.keepOnly(loaded);
  }

  /** Drops retries beyond the horizon, to make room for earlier ones. They will be loaded again. */
  dropRetriesBeyondHorizon(): void {
    this.#queue.dropRetriesBeyondHorizon();
  }

  /** Call this when the worker has lost the shard. Requests in flight still end, but no longer belong to a lane. */
  close(): void {
    this.isClosed = true;
    this.#queue.close();
  }

  // --- which delivery is next -----------------------------------------------------------------------------

  /** How many requests may be on the wire at the same time, as of now. */
  get inFlightLimit(): number {
    if (this.isCareful || this.isFifo) return 1;
    return Math.min(this.endpoint.maxInFlight, this.slowStartWindow, this.adaptiveLimit);
  }

  /** The earliest time at which a delivery may be started. Infinity: none can start before the lane changes. */
  readyAt(now: number, monotonic: number): number {
    const dueAt = this.#nextDueAt(now);
    return dueAt === Number.POSITIVE_INFINITY ? dueAt : Math.max(dueAt, this.#allowedAt(now, monotonic));
  }

  /** The delivery that somebody requested as a probe. A FIFO lane sends it only from its head. */
  get #requested(): LaneItem | null {
    if (!this.isFifo) return this.#queue.requested;
    const { head } = this.#queue.fresh;
    return head !== undefined && this.#isRequestedHead(head) ? head : null;
  }

  #isRequestedHead({ delivery }: LaneItem): boolean {
    const requested = this.#requestedHead;
    return requested !== null && delivery.id === requested.id && delivery.attempts === requested.attempts;
  }

  /** When the next queued delivery is due. */
  #nextDueAt(now: number): number {
    const requested = this.#requested;
    if (requested === null) return this.#nextQueuedDueAt(now);
    const dueAt = Math.max(now, requestDueTime(requested));
    // While the circuit is open, nothing else is sent before the requested probe.
    if (dueAt === now || this.isFifo || !this.breaker.allowsTraffic) return dueAt;
    return Math.min(dueAt, this.#nextQueuedDueAt(now));
  }

  #nextQueuedDueAt(now: number): number {
    const freshAt = this.#freshDueAt(now);
    return freshAt === now ? now : Math.min(freshAt, Math.max(now, this.#queue.retries.firstDueAt));
  }

  /** When the head of the fresh queue is due. With batches, it may wait for others. Infinity: the queue is empty. */
  #freshDueAt(now: number): number {
    const { head, size } = this.#queue.fresh;
    if (head === undefined) return Number.POSITIVE_INFINITY;
    const dueAt = this.isFifo ? Math.max(now, dueTime(head)) : now;
    const { batch } = this.endpoint;
    return batch === null ? dueAt : Math.max(dueAt, batchDueAt(head, size, batch));
  }

  /** When limits, breaker and rate limit allow a request. */
  #allowedAt(now: number, monotonic: number): number {
    const limit = this.inFlightLimit;
    if (!this.isActive || this.isLeaving || this.inFlight >= limit) return Number.POSITIVE_INFINITY;
    // FIFO: the order would be lost if the next delivery were sent before this result is recorded.
    if ((this.isFifo || this.isCareful) && this.unsettled > 0) return Number.POSITIVE_INFINITY;
    const placeFreeAt = this.#queue.earlierRequests.placeFreeAt(now, this.inFlight, limit);
    let allowedAt = Math.max(now, this.holdUntil, placeFreeAt);
    if (!this.breaker.allowsTraffic) {
      if (this.#probe !== null) return Number.POSITIVE_INFINITY;
      // A requested probe waits only for a probe of an earlier owner that may still be on the wire.
      if (this.#requested === null || this.breaker.record.circuit === 'half_open')
        allowedAt = Math.max(allowedAt, this.breaker.probeAt ?? now);
    }
    if (this.#pace !== null) allowedAt = Math.max(allowedAt, now + this.#pace.msUntilTurn(monotonic));
    return allowedAt;
  }

  /** Which kinds can be started, given that `readyAt` returned now. */
  readyKinds(now: number): { fresh: boolean; retry: boolean } {
    if (this.isFifo) {
      const head = this.#queue.fresh.head;
      const fresh = head !== undefined && head.delivery.attempts === 0;
      return { fresh, retry: head !== undefined && !fresh };
    }
    const requested = this.#queue.requested;
    const retryReady =
      this.#queue.retries.findDue(now) !== null || (requested !== null && requestDueTime(requested) <= now);
    // A probe is the oldest delivery that is due, and counts as a retry even if it is fresh.
    if (!this.breaker.allowsTraffic) return { fresh: false, retry: retryReady || this.queuedFresh > 0 };
    return { fresh: this.queuedFresh > 0 && this.#freshDueAt(now) <= now, retry: retryReady };
  }

  /** True if a retry is due and the last three deliveries were fresh. */
  isRetryTurn(now: number): boolean {
    return !this.isFifo && this.#freshInARow >= FRESH_TURNS && this.readyKinds(now).retry;
  }

  /** Takes the next delivery of a kind for sending. Call it only if `readyAt` returned now. */
  take(kind: Kind, now: number, monotonic: number): LaneItem | null {
    const isProbe = !this.breaker.allowsTraffic;
    const item = this.#queue.shift(kind, now, isProbe);
    if (item === null) return null;
    if (this.#pace !== null && !this.#pace.takeTurn(monotonic)) {
      this.#queue.requeue(item);
      return null;
    }
    this.#freshInARow = kind === 'fresh' ? this.#freshInARow + 1 : 0;
    item.state = 'in_flight';
    item.isProbe = isProbe;
    if (this.isFifo) item.isRequested = this.#isRequestedHead(item);
    if (isProbe) this.#probe = item;
    this.inFlight += 1;
    const places = Math.min(this.endpoint.maxInFlight, this.adaptiveLimit);
    this.recordStart(item, now, this.inFlight >= places);
    return item;
  }

  /** The deliveries of batches, besides the first one of each, which `take` returned. */
  get batches(): LaneBatches {
    return new LaneBatches(this.#queue);
  }

  // --- after a delivery was taken -------------------------------------------------------------------------

  /** Counts a payload that was loaded for sending as memory of this lane, until the request has ended. */
  holdPayload(item: LaneItem, event: EventContent): void {
    this.#queue.holdPayload(item, event);
  }

  /** Returns 0 if the rate limit allows the request now, otherwise how long to wait before the next call. */
  tryStart(monotonic: number): number {
    return this.#pace?.tryStart(monotonic) ?? 0;
  }

  /** Queues a delivery again that was taken and not sent, for instance because its payload could not be read. */
  putBack(item: LaneItem): void {
    this.#endFlight(item);
    this.#pace?.giveTurnBack();
    this.#queue.requeue(item);
    if (this.isFifo) this.#queue.fresh.putInOrder();
  }

  /**
   * Forgets a delivery that was taken and not sent, because its state in the store has changed. The caller loads the lane again. Its
   * turn costs nothing: otherwise deliveries that debounce ends would use up the turns of the delivery that is sent.
   */
  drop(item: LaneItem): void {
    this.#endFlight(item);
    this.#pace?.giveTurnBack();
    this.#endRequest(item);
    this.#queue.forget(item);
    this.#clearIfFifo();
  }

  /** Call this when the request has ended and its result is not recorded yet. */
  markAnswered(item: LaneItem): void {
    this.#endFlight(item);
    this.#endRequest(item);
    this.unsettled += 1;
    item.state = 'unsettled';
    this.#queue.dropPayload(item);
  }

  /** Call this when its end is recorded. `moved` false: another worker settled it, or it was replayed. */
  finish(item: LaneItem, moved = true): void {
    this.unsettled -= 1;
    this.#queue.forget(item);
    if (!moved) this.#clearIfFifo();
  }

  /** Call this when the retry is recorded. `hasRoom`: whether the delivery may stay in memory. */
  reschedule(item: LaneItem, delivery: WaitingDelivery, hasRoom: boolean): void {
    this.unsettled -= 1;
    this.#queue.reschedule(item, delivery, hasRoom);
  }

  /** A FIFO lane may not have the right head in memory any more: it sends nothing before it is loaded again. */
  #clearIfFifo(): void {
    if (this.isFifo) this.clearQueue();
  }

  #endRequest(item: LaneItem): void {
    item.isRequested = false;
    if (this.#isRequestedHead(item)) this.#requestedHead = null;
  }

  #endFlight(item: LaneItem): void {
    this.inFlight -= 1;
    this.responseTimes.recordEnd(item);
    if (this.#probe === item) this.#probe = null;
  }
}
