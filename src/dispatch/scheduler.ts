/**
 * Decides which lane sends next. Knows which lanes are ready and when the others will be, and divides the sockets among
 * them. Starts a few attempts per turn of the event loop, so that answers do not have to wait.
 */
import type { Clock } from '../domain/clock.ts';
import { TurnoverMap } from '../domain/turnover-map.ts';
import type { BlockedResultCounts } from '../ports/stages.ts';
import { Alarms } from './alarms.ts';
import type { Attempts } from './attempts.ts';
import type { Kind, Lane, LaneItem } from './lane.ts';
import type { Ownership } from './ownership.ts';
import type { Refill } from './refill.ts';
import { SocketBudget } from './socket-budget.ts';
import { Turns } from './turns.ts';

export interface SchedulerOptions {
  readonly clock: Clock;
  readonly ownership: Pick<Ownership, 'hasValidLease' | 'isGivingUp'>;
  readonly maxSockets: number;
  readonly retrySocketShare: number;
  /** No request is started while this many results wait to be recorded. */
  readonly unsettledCap: number;
}

/** Parts that need the scheduler in their constructor, so they are connected to it afterwards. */
export interface SchedulerParts {
  readonly attempts: Pick<Attempts, 'start' | 'unsettled'>;
  readonly refill: Pick<Refill, 'loadIfLow'>;
  readonly results: BlockedResultCounts;
}

const STARTS_PER_TURN = 32;
/** A lane sends nothing more while this many of its results wait for a lock: the results of others need the room. */
const MAX_BLOCKED_RESULTS = 20;

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #turns: Record<Kind, Turns> = { fresh: new Turns(), retry: new Turns() };
  readonly #budget: SocketBudget;
  readonly #alarms: Alarms;
  readonly #started = new TurnoverMap<LaneItem, { kind: Kind; at: number; lane: Lane }>();
  /** Lanes with signs of trouble that wait until the sockets are less crowded: for their first one, or for more. */
  readonly #parked = { first: new Turns(), more: new Turns() };
  #parts: SchedulerParts | null = null;
  #isPumpScheduled = false;
  #preferRetry = false;
  #isStopped = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#budget = new SocketBudget(options.maxSockets, options.retrySocketShare);
    this.#alarms = new Alarms(options.clock, (lane) => this.consider(lane));
  }

  connect(parts: SchedulerParts): void {
    this.#parts = parts;
  }

  get inFlight(): number {
    return this.#budget.total;
  }

  /** When the attempt of a delivery started. Undefined if its request has ended. */
  startedAt(item: LaneItem): number | undefined {
    return this.#started.get(item)?.at;
  }

  stop(): void {
    this.#isStopped = true;
    this.#alarms.stop();
  }

  /** The clock was set by `stepMs`, because the store's clock was. */
  onClockStepped(stepMs: number): void {
    this.#alarms.onClockStepped(stepMs);
  }

  forget(lane: Lane): void {
    this.#turns.fresh.remove(lane);
    this.#turns.retry.remove(lane);
    this.#parked.first.remove(lane);
    this.#parked.more.remove(lane);
    this.#alarms.forget(lane);
  }

  /** Call this after every change of a lane. Queues it for sending, sets its alarm, and loads more if it runs low. */
  consider(lane: Lane): void {
    if (lane.isClosed || this.#isStopped) return;
    const { clock } = this.#options;
    const now = clock.now();
    const readyAt = lane.readyAt(now, clock.monotonic());
    if (readyAt <= now) {
      const ready = lane.readyKinds(now);
      if (ready.fresh) this.#turns.fresh.add(lane);
      if (ready.retry) this.#turns.retry.add(lane);
      this.pumpSoon();
    } else if (readyAt < Number.POSITIVE_INFINITY) {
      this.#alarms.set(lane, readyAt);
    }
    const loadAgainAt = this.#parts!.refill.loadIfLow(lane, now);
    if (loadAgainAt < Number.POSITIVE_INFINITY) this.#alarms.set(lane, loadAgainAt);
  }

  /** Frees the socket of a delivery whose request has ended. */
  release(item: LaneItem): void {
    const started = this.#started.get(item);
    if (started === undefined) return;
    this.#started.delete(item);
    this.#budget.inFlight[started.kind] -= 1;
    this.#unparkOne();
    this.consider(started.lane);
    this.pumpSoon();
  }

  /** One lane per free socket: checking thousands of lanes each time would be too slow. */
  #unparkOne(): void {
    const { first, more } = this.#parked;
    const lane =
      (this.#budget.isNearlyFull ? undefined : first.next()) ??
      (this.#budget.isCrowded ? undefined : more.next());
    if (lane !== undefined) this.consider(lane);
  }

  pumpSoon(): void {
    if (this.#isPumpScheduled || this.#isStopped) return;
    this.#isPumpScheduled = true;
    setImmediate(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { ownership, unsettledCap } = this.#options;
    const { attempts, results } = this.#parts!;
    for (let starts = 0; starts < STARTS_PER_TURN; starts += 1) {
      // Blocked results of some lanes do not stop the others, unless there are very many.
      const unsettled = attempts.unsettled - Math.min(results.blockedResults, unsettledCap);
      if (unsettled >= unsettledCap || !ownership.hasValidLease) return;
      const kind = this.#nextKind();
      if (kind === null) return;
      this.#startNext(kind);
    }
    this.pumpSoon();
  }

  /** Fresh deliveries and retries alternate while both have work and sockets. */
  #nextKind(): Kind | null {
    const fresh = !this.#turns.fresh.isEmpty && this.#budget.hasFree('fresh');
    const retry = !this.#turns.retry.isEmpty && this.#budget.hasFree('retry');
    if (!fresh && !retry) return null;
    this.#preferRetry = !this.#preferRetry;
    return fresh && (!retry || !this.#preferRetry) ? 'fresh' : 'retry';
  }

  #startNext(kind: Kind): void {
    const { clock, ownership } = this.#options;
    const lane = this.#turns[kind].next();
    if (lane === undefined || lane.isClosed || ownership.isGivingUp(lane.shard)) return;
    // `consider` is called again when one of the blocked results is recorded.
    if (this.#parts!.results.countBlocked(lane.id) >= MAX_BLOCKED_RESULTS) return;
    const now = clock.now();
    const monotonic = clock.monotonic();
    if (lane.readyAt(now, monotonic) > now || !lane.readyKinds(now)[kind]) return this.consider(lane);
    // A lane with signs of trouble keeps one request in flight as long as possible: otherwise it could never recover.
    const isCrowded = lane.inFlight > 0 ? this.#budget.isCrowded : this.#budget.isNearlyFull;
    if (isCrowded && this.#showsTrouble(lane, now)) {
      this.#parked[lane.inFlight > 0 ? 'more' : 'first'].add(lane);
      return;
    }
    // If no socket is free for a retry, send the fresh delivery: retries never delay fresh deliveries.
    const chosen =
      kind === 'fresh' && this.#budget.hasFree('retry') && lane.isRetryTurn(now) ? 'retry' : kind;
    const item = lane.take(chosen, now, monotonic);
    if (item !== null) {
      this.#budget.inFlight[chosen] += 1;
      this.#started.set(item, { kind: chosen, at: now, lane });
      this.#parts!.attempts.start(lane, item);
    }
    this.consider(lane);
  }

  /** An endpoint that has not answered yet may be slow: until it answers, its lane is treated as slow. */
  #showsTrouble(lane: Lane, now: number): boolean {
    return lane.failingSince !== null || !lane.responseTimes.isKnownToBeFast(now);
  }
}
