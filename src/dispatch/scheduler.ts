/**
 * Decides which lane sends next. Knows the lanes that are ready and when the others will be, shares the sockets out among
 * them, and starts attempts in short turns of the event loop, so that answers need not wait.
 */
import type { Clock } from '../domain/clock.ts';
import { Alarms } from './alarms.ts';
import type { Attempts } from './attempts.ts';
import { SocketBudget } from './budget.ts';
import type { Kind, Lane, LaneItem } from './lane.ts';
import type { Ownership } from './ownership.ts';
import type { Refill } from './refill.ts';
import { Turns } from './turns.ts';

export interface SchedulerOptions {
  readonly clock: Clock;
  readonly ownership: Pick<Ownership, 'hasValidLease' | 'isGivingUp'>;
  readonly maxSockets: number;
  readonly retrySocketShare: number;
  /** Nothing is started while this many results wait to be recorded. */
  readonly unsettledCap: number;
}

/** The parts that need the scheduler themselves, so that they are connected after it is made. */
export interface SchedulerParts {
  readonly attempts: Pick<Attempts, 'start' | 'unsettled'>;
  readonly refill: Pick<Refill, 'feed'>;
}

const STARTS_PER_TURN = 32;
/** A lane is suspect if its oldest request has hung for this long, with no success since it started. */
const SUSPECT_AFTER_MS = 1_000;

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #turns: Record<Kind, Turns> = { fresh: new Turns(), retry: new Turns() };
  readonly #budget: SocketBudget;
  readonly #alarms: Alarms;
  readonly #started = new Map<LaneItem, { kind: Kind; at: number; lane: Lane }>();
  /** Suspect lanes that wait until the sockets are less crowded. */
  readonly #parked = new Set<Lane>();
  #parts: SchedulerParts | null = null;
  #pumping = false;
  #preferRetry = false;
  #stopped = false;

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
    this.#stopped = true;
    this.#alarms.stop();
  }

  forget(lane: Lane): void {
    this.#turns.fresh.remove(lane);
    this.#turns.retry.remove(lane);
    this.#parked.delete(lane);
    this.#alarms.forget(lane);
  }

  /** Call this after anything has changed in a lane: queues it for sending, sets its alarm, loads more if it needs more. */
  consider(lane: Lane): void {
    if (lane.isClosed || this.#stopped) return;
    const { clock } = this.#options;
    const now = clock.now();
    const readyAt = lane.readyAt(now, clock.monotonic());
    if (readyAt <= now) {
      const ready = lane.kindsReady(now);
      if (ready.fresh) this.#turns.fresh.add(lane);
      if (ready.retry) this.#turns.retry.add(lane);
      this.pumpSoon();
    } else if (readyAt < Number.POSITIVE_INFINITY) {
      this.#alarms.set(lane, readyAt);
    }
    const lookAgainAt = this.#parts!.refill.feed(lane, now);
    if (lookAgainAt < Number.POSITIVE_INFINITY) this.#alarms.set(lane, lookAgainAt);
  }

  /** Frees the socket of a delivery whose request has ended. */
  release(item: LaneItem): void {
    const started = this.#started.get(item);
    if (started === undefined) return;
    this.#started.delete(item);
    this.#budget.inFlight[started.kind] -= 1;
    if (!this.#budget.crowded) this.#unparkOne();
    this.consider(started.lane);
    this.pumpSoon();
  }

  /** One lane per free socket: looking at thousands of them each time would be too slow. */
  #unparkOne(): void {
    for (const lane of this.#parked) {
      this.#parked.delete(lane);
      return this.consider(lane);
    }
  }

  pumpSoon(): void {
    if (this.#pumping || this.#stopped) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { ownership, unsettledCap } = this.#options;
    const { attempts } = this.#parts!;
    for (let starts = 0; starts < STARTS_PER_TURN; starts += 1) {
      if (attempts.unsettled >= unsettledCap || !ownership.hasValidLease) return;
      const kind = this.#nextKind();
      if (kind === null) return;
      this.#startNext(kind);
    }
    this.pumpSoon();
  }

  /** Fresh deliveries and retries alternate while both have work and sockets. */
  #nextKind(): Kind | null {
    const fresh = !this.#turns.fresh.empty && this.#budget.has('fresh');
    const retry = !this.#turns.retry.empty && this.#budget.has('retry');
    if (!fresh && !retry) return null;
    this.#preferRetry = !this.#preferRetry;
    return fresh && (!retry || !this.#preferRetry) ? 'fresh' : 'retry';
  }

  #startNext(kind: Kind): void {
    const { clock, ownership } = this.#options;
    const lane = this.#turns[kind].next();
    if (lane === undefined || lane.isClosed || ownership.isGivingUp(lane.shard)) return;
    const now = clock.now();
    const monotonic = clock.monotonic();
    if (lane.readyAt(now, monotonic) > now || !lane.kindsReady(now)[kind]) return this.consider(lane);
    // A suspect lane keeps one request in flight as long as possible: without it, it could never recover.
    const crowded = lane.inFlight > 0 ? this.#budget.crowded : this.#budget.nearlyFull;
    if (crowded && this.#isSuspect(lane, now)) {
      this.#parked.add(lane);
      return;
    }
    // If no socket is left for a retry, the fresh delivery goes: retries never delay fresh deliveries.
    const chosen = kind === 'fresh' && this.#budget.has('retry') && lane.owesRetry(now) ? 'retry' : kind;
    const item = lane.take(chosen, now, monotonic);
    if (item !== null) {
      this.#budget.inFlight[chosen] += 1;
      this.#started.set(item, { kind: chosen, at: now, lane });
      this.#parts!.attempts.start(lane, item);
    }
    this.consider(lane);
  }

  #isSuspect(lane: Lane, now: number): boolean {
    const hanging = now - lane.oldestStartAt > SUSPECT_AFTER_MS && lane.lastSuccessAt < lane.oldestStartAt;
    return hanging || lane.failingSince !== null;
  }
}
