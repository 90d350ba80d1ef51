/**
 * The queue of one endpoint, in the one worker that owns it: who goes next, and whether anybody may go at all.
 * No I/O and no clock of its own, so that it can be tested with every order of events.
 *
 * A delivery in a lane is
 *   queued      in `fresh` (never tried) or in `retries` (has a time at which it is due)
 *   in flight   its request is being made (it holds one of the endpoint's `max_in_flight` places)
 *   unsettled   answered, but the database does not know yet
 * and in `known` all that while, so that reading it again from the database does not send it twice.
 *
 * Lanes are bounded. What does not fit stays in PostgreSQL only, and `read` remembers that there is more.
 */
import { Breaker, type BreakerRecord } from '../domain/breaker.ts';
import type { WaitingDelivery } from '../domain/delivery.ts';
import { type Endpoint, shardOf } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Pace } from '../domain/pace.ts';
import { FreshQueue } from './fresh-queue.ts';
import { dueTime, type LaneItem } from './lane-item.ts';
import { ReadProgress } from './read-progress.ts';
import { RetryQueue } from './retry-queue.ts';
import { SlowStart } from './slow-start.ts';

export type { LaneItem };

export interface LaneState {
  readonly breaker: BreakerRecord;
  readonly failingSince: number | null;
  /** A dead letter that a FIFO endpoint with `fifo_on_dead: "block"` waits for. */
  readonly blocked: boolean;
}

/** What all lanes of a worker hold together, kept up to date by each of them. */
export interface LaneMemory {
  items: number;
  bytes: number;
}

export interface LaneBacklog {
  /** Nothing more waits in the database. */
  readonly complete: boolean;
  readonly fresh: number;
  readonly retries: number;
  /** When the age of the oldest fresh one began; infinity: there is none. */
  readonly oldestFresh: number;
  /** When the first retry is or was due; infinity: there is none. */
  readonly firstDue: number;
  /** All wait for the retry of the first, because order is all. */
  readonly orderHolds: boolean;
}

export type Kind = 'fresh' | 'retry';

/** Of four turns in which both kinds are ready, three are for fresh ones: a stream of new events starves no retry. */
const FRESH_TURNS = 3;

export class Lane {
  readonly id: Uuid;
  readonly shard: number;
  endpoint: Endpoint;
  breaker: Breaker;
  failingSince: number | null;
  blocked: boolean;
  /** Retry-After of a 429: nothing is sent before. */
  holdUntil = 0;
  inFlight = 0;
  unsettled = 0;
  /** What of its rows is in memory. */
  readonly read = new ReadProgress();
  /** Once taken from the worker, nothing of this lane may be started any more. */
  closed = false;
  /** Write before sending, one at a time: the shard has killed its workers again and again. */
  careful = false;
  lastSuccessAt = 0;
  oldestStartAt = Number.POSITIVE_INFINITY;

  readonly #known = new Map<Uuid, LaneItem>();
  /** Deliveries that an earlier owner had on the wire when it handed over, and until when they may be there. */
  readonly #elsewhere = new Map<Uuid, number>();
  readonly #fresh = new FreshQueue();
  readonly #retries = new RetryQueue(
    (item) => item.state === 'queued' && this.#known.get(item.delivery.id) === item,
  );
  readonly #slowStart = new SlowStart();
  readonly #memory: LaneMemory;
  #pace: Pace | null;
  #probing: LaneItem | null = null;
  #freshInARow = 0;

  constructor(
    endpoint: Endpoint,
    state: LaneState,
    pace: Pace | null,
    memory: LaneMemory = { items: 0, bytes: 0 },
  ) {
    this.id = endpoint.id;
    this.shard = shardOf(endpoint.id);
    this.endpoint = endpoint;
    this.breaker = new Breaker(endpoint.breaker, state.breaker);
    this.failingSince = state.failingSince;
    this.blocked = state.blocked;
    this.#pace = pace;
    this.#memory = memory;
  }

  get fifo(): boolean {
    return this.endpoint.ordering === 'fifo';
  }

  /** Deliveries in memory, in whatever state. */
  get size(): number {
    return this.#known.size;
  }

  get queuedFresh(): number {
    return this.#fresh.size;
  }

  get queuedRetries(): number {
    return this.#retries.size;
  }

  /** What waits for its turn, as far as it is in memory. O(1): asked of every lane now and then. */
  get backlog(): LaneBacklog {
    const head = this.#fresh.head;
    const retryAtHead = this.fifo && head !== undefined && head.delivery.attempts > 0;
    return {
      complete: this.fifo ? !this.read.moreFresh : this.read.complete,
      fresh: this.queuedFresh,
      retries: this.queuedRetries,
      oldestFresh: head?.delivery.agesFrom ?? Number.POSITIVE_INFINITY,
      firstDue: this.#retries.firstDueAt,
      orderHolds: retryAtHead,
    };
  }

  knows(id: Uuid): boolean {
    return this.#known.has(id);
  }

  /** Sends at all: neither paused, nor off, nor blocked by a dead letter, nor somebody else's by now. */
  get active(): boolean {
    const { endpoint } = this;
    return !this.closed && endpoint.enabled && !endpoint.deleted && !endpoint.paused && !this.blocked;
  }

  /** Sends, and more than a probe now and then. */
  get flows(): boolean {
    return this.active && this.breaker.allowsTraffic;
  }

  /** The endpoint was changed through the API. */
  reconfigure(endpoint: Endpoint, pace: Pace | null): void {
    const before = this.endpoint;
    this.endpoint = endpoint;
    if (JSON.stringify(before.breaker) !== JSON.stringify(endpoint.breaker)) {
      this.breaker = new Breaker(endpoint.breaker, this.breaker.record);
    }
    if (JSON.stringify(before.rateLimit) !== JSON.stringify(endpoint.rateLimit)) this.#pace = pace;
  }

  /** What is remembered about the endpoint was changed behind the lane's back. */
  restore(state: LaneState): void {
    this.breaker = new Breaker(this.endpoint.breaker, state.breaker);
    this.failingSince = state.failingSince;
    this.blocked = state.blocked;
  }

  // --- coming in ------------------------------------------------------------------------------------------

  /** A fresh delivery. The caller has seen to it that there is room. */
  addFresh(item: LaneItem): boolean {
    const known = this.#known.get(item.delivery.id);
    // A replay makes the head of a FIFO lane due now.
    if (known !== undefined && this.fifo) {
      if (this.#isNewer(item, known)) known.delivery = item.delivery;
      else if (hasComeBack(item, known)) this.read.missedFresh(0);
    }
    if (known !== undefined || this.read.hasLeft(item.delivery.id)) return false;
    this.#remember(item);
    // One that must wait does not stand in the way of those behind it, except where order is all.
    if (!this.fifo && (item.notBefore > 0 || item.delivery.dueAt !== null)) {
      this.#retries.push(item);
      return true;
    }
    // Where two at once may never be, all wait for it: one with an earlier number may have turned up since it left.
    this.holdUntil = Math.max(this.holdUntil, item.notBefore);
    this.#fresh.push(item);
    if (this.fifo) this.#fresh.putInOrder();
    return true;
  }

  /** A delivery that is due at a time. Also moves one that is known and still queued, if its time was changed. */
  addRetry(item: LaneItem): boolean {
    const { id } = item.delivery;
    const known = this.#known.get(id);
    if (known !== undefined) {
      if (hasComeBack(item, known)) this.read.missedRetry(item.delivery.dueAt ?? 0);
      if (this.fifo || !this.#isNewer(item, known)) return false;
      if (known.delivery.dueAt === null && known.notBefore === 0) {
        // It stands among the fresh ones, due already: in both queues it would be sent twice.
        known.delivery = { ...item.delivery, dueAt: null };
        return true;
      }
      known.delivery = item.delivery;
      this.#retries.move(known);
      return true;
    }
    if (this.read.hasLeft(id)) return false;
    this.#remember(item);
    this.#retries.push(item);
    return true;
  }

  #remember(item: LaneItem): void {
    this.#known.set(item.delivery.id, item);
    this.#memory.items += 1;
    this.#memory.bytes += item.event?.data.length ?? 0;
    if (item.notBefore > 0) this.#elsewhere.set(item.delivery.id, item.notBefore);
  }

  /** Whether a row that was read gives a queued delivery another time. A read may be older than its last attempt. */
  #isNewer(read: LaneItem, known: LaneItem): boolean {
    return (
      known.state === 'queued' &&
      read.delivery.attempts >= known.delivery.attempts &&
      read.delivery.dueAt !== known.delivery.dueAt
    );
  }

  // --- who goes next --------------------------------------------------------------------------------------

  /** How many may be on the wire at once, just now. */
  get limit(): number {
    if (this.careful || this.fifo) return 1;
    return Math.min(this.endpoint.maxInFlight, this.#slowStart.window);
  }

  /**
   * When may something be started, seen from now? `now` itself: at once. A later time: not before. Infinity: not by
   * the passing of time, something has to happen first.
   */
  readyAt(now: number, monotonic: number): number {
    const work = this.#workAt(now);
    if (work === Number.POSITIVE_INFINITY) return work;
    const gate = this.#gateAt(now, monotonic);
    return Math.max(work, gate);
  }

  /** When the next queued delivery is due. */
  #workAt(now: number): number {
    if (this.queuedFresh > 0) {
      const head = this.#fresh.head!;
      return this.fifo ? Math.max(now, dueTime(head)) : now;
    }
    return Math.max(now, this.#retries.firstDueAt);
  }

  #gateAt(now: number, monotonic: number): number {
    if (!this.active || this.inFlight >= this.limit) return Number.POSITIVE_INFINITY;
    // The order would be lost if the next one were on its way before this one is written down.
    if ((this.fifo || this.careful) && this.unsettled > 0) return Number.POSITIVE_INFINITY;
    let gate = Math.max(now, this.holdUntil, this.#placeFreeAt(now));
    if (!this.breaker.allowsTraffic) {
      if (this.#probing !== null) return Number.POSITIVE_INFINITY;
      gate = Math.max(gate, this.breaker.probeAt ?? now);
    }
    if (this.#pace !== null) gate = Math.max(gate, now + this.#pace.msUntilTurn(monotonic));
    return gate;
  }

  /** When a place is free, counting those that an earlier owner's requests may still hold. */
  #placeFreeAt(now: number): number {
    if (this.#elsewhere.size === 0) return now;
    for (const [id, until] of this.#elsewhere) if (until <= now) this.#elsewhere.delete(id);
    const tooMany = this.inFlight + this.#elsewhere.size - this.limit;
    if (tooMany < 0) return now;
    return [...this.#elsewhere.values()].sort((a, b) => a - b)[tooMany] ?? now;
  }

  /** Which kinds could be started now, given that `readyAt` says now. */
  kindsReady(now: number): { fresh: boolean; retry: boolean } {
    if (this.fifo) {
      const head = this.#fresh.head;
      const fresh = head !== undefined && head.delivery.attempts === 0;
      return { fresh, retry: head !== undefined && !fresh };
    }
    const retryReady = this.#retries.due(now) !== null;
    // A probe is the oldest that is due, and counts as a retry whatever it is.
    if (!this.breaker.allowsTraffic) return { fresh: false, retry: retryReady || this.queuedFresh > 0 };
    return { fresh: this.queuedFresh > 0, retry: retryReady };
  }

  /** Fresh ones have had their turns, and a retry is due. */
  owesRetry(now: number): boolean {
    return !this.fifo && this.#freshInARow >= FRESH_TURNS && this.kindsReady(now).retry;
  }

  /** Takes the next delivery of a kind for sending. Only after `readyAt` said now. */
  take(kind: Kind, now: number, monotonic: number): LaneItem | null {
    const probe = !this.breaker.allowsTraffic;
    const item = this.#pick(kind, now, probe);
    if (item === null) return null;
    if (this.#pace !== null && !this.#pace.takeTurn(monotonic)) {
      this.#putBack(item);
      return null;
    }
    this.#freshInARow = kind === 'fresh' ? this.#freshInARow + 1 : 0;
    item.state = 'in_flight';
    item.probe = probe;
    if (probe) this.#probing = item;
    if (this.inFlight === 0) this.oldestStartAt = now;
    this.inFlight += 1;
    return item;
  }

  #pick(kind: Kind, now: number, probe: boolean): LaneItem | null {
    if (kind === 'fresh' || this.fifo) return this.#fresh.shift();
    const retry = this.#retries.due(now);
    const fresh = this.#fresh.head;
    if (
      probe &&
      fresh !== undefined &&
      (retry === null || fresh.delivery.agesFrom < retry.delivery.agesFrom)
    ) {
      return this.#fresh.shift();
    }
    if (retry !== null) this.#retries.removeFirst();
    return retry;
  }

  #putBack(item: LaneItem): void {
    item.state = 'queued';
    item.probe = false;
    if (this.fifo || (item.delivery.dueAt === null && item.notBefore === 0)) {
      this.#fresh.putFirst(item);
    } else {
      this.#retries.push(item);
    }
  }

  // --- what becomes of it ---------------------------------------------------------------------------------

  /** One that was taken has all it needs to be sent. 0: now. Otherwise it is to ask again after so many milliseconds. */
  leave(monotonic: number): number {
    return this.#pace?.leave(monotonic) ?? 0;
  }

  /** It was taken but not sent (ownership not proven, payload not readable): as if it had not been taken. */
  returned(item: LaneItem): void {
    this.#offTheWire();
    this.#pace?.giveTurnBack();
    this.#endProbe(item);
    this.#putBack(item);
    if (this.fifo) this.#fresh.putInOrder();
  }

  /** It was taken and turns out not to be as it is remembered: out of memory, to be read again. */
  dropped(item: LaneItem): void {
    this.#offTheWire();
    this.#endProbe(item);
    this.#forget(item);
    this.#doubtOrder();
  }

  /** Its head may still be waiting in the database: a strictly ordered lane sends nothing before it has looked. */
  #doubtOrder(): void {
    if (this.fifo) this.clearQueue();
  }

  /** Its request has ended; the database does not know yet. */
  answered(item: LaneItem): void {
    this.#offTheWire();
    this.unsettled += 1;
    item.state = 'unsettled';
    this.#letGoOfPayload(item);
    this.#endProbe(item);
  }

  #offTheWire(): void {
    this.inFlight -= 1;
    if (this.inFlight === 0) this.oldestStartAt = Number.POSITIVE_INFINITY;
  }

  #endProbe(item: LaneItem): void {
    if (this.#probing === item) this.#probing = null;
  }

  /** The database knows that it has ended, or (`moved` false) knows something else about it than we do. */
  ended(item: LaneItem, moved = true): void {
    this.unsettled -= 1;
    this.#forget(item);
    if (!moved) this.#doubtOrder();
  }

  /** The database knows that it is to be tried again. `hasRoom`: whether it may stay in memory. */
  rescheduled(item: LaneItem, delivery: WaitingDelivery, hasRoom: boolean): void {
    this.unsettled -= 1;
    item.delivery = delivery;
    item.notBefore = 0;
    item.carefulStarts = 0;
    item.startCounted = false;
    if (this.fifo) {
      // Whatever it waits for, it keeps its place.
      this.#putBack(item);
      return;
    }
    const dueAt = delivery.dueAt ?? 0;
    if (dueAt >= this.read.retryHorizon || !hasRoom) {
      this.read.missedRetry(dueAt);
      this.#forget(item);
      return;
    }
    this.#putBack(item);
  }

  #letGoOfPayload(item: LaneItem): void {
    if (item.event === null) return;
    if (this.#known.get(item.delivery.id) === item) this.#memory.bytes -= item.event.data.length;
    item.event = null;
  }

  #forget(item: LaneItem): void {
    this.#letGoOfPayload(item);
    if (this.#known.delete(item.delivery.id)) this.#memory.items -= 1;
    this.read.left(item.delivery.id);
  }

  succeeded(now: number): void {
    this.lastSuccessAt = now;
    this.#slowStart.succeeded(this.endpoint.maxInFlight);
  }

  slowStart(): void {
    this.#slowStart.begin();
  }

  /** Forgets everything queued (the endpoint was switched off); what is in flight or unsettled goes on. */
  clearQueue(): void {
    for (const item of this.#known.values()) if (item.state === 'queued') this.#forget(item);
    this.#fresh.clear();
    this.#retries.clear();
    this.read.forgotAll();
  }

  /**
   * The horizon is near and the lane is full of retries that are due after it: they make room for those that come
   * first. They are beyond the horizon, so they will be read again.
   */
  letGoOfLaterRetries(): void {
    for (const item of this.#retries.removeAfter(this.read.retryHorizon)) {
      this.read.missedRetry(item.delivery.dueAt!);
      this.#forget(item);
    }
  }

  /** The shard is not ours any more. What is in flight still ends, outside of any lane. */
  close(): void {
    this.closed = true;
    for (const item of this.#known.values()) {
      this.#memory.items -= 1;
      this.#memory.bytes -= item.event?.data.length ?? 0;
    }
    this.#known.clear();
  }

  /** On the wire, or answered and not yet written down. */
  get underWay(): LaneItem[] {
    return [...this.#known.values()].filter((item) => item.state !== 'queued');
  }
}

/** It ended and was replayed before its lane has heard of the end: the row is to be read again when it has. */
function hasComeBack(read: LaneItem, known: LaneItem): boolean {
  return (
    known.state === 'unsettled' &&
    read.delivery.trigger === 'replay' &&
    read.delivery.attempts > known.delivery.attempts
  );
}
