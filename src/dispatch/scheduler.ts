/**
 * Whose turn is it? Knows the lanes that are ready and those that will be, shares the sockets out among them, and
 * starts one delivery after the other, in short turns of the event loop so that answers are not kept waiting.
 */
import type { Clock } from '../domain/clock.ts';
import { Alarms } from './alarms.ts';
import { SocketBudget } from './budget.ts';
import type { Kind, Lane, LaneItem } from './lane.ts';
import { Turns } from './turns.ts';

export interface SchedulerOptions {
  readonly clock: Clock;
  readonly maxSockets: number;
  readonly retrySocketShare: number;
  /** Whether anything may be started just now: ownership is proven, and not too much is waiting to be written down. */
  readonly mayStart: () => boolean;
  /** Whether this shard is about to change hands. */
  readonly isLeaving: (shard: number) => boolean;
  readonly start: (lane: Lane, item: LaneItem) => void;
  /** After a lane was looked at: does it need more? Returns when to look again, or infinity. */
  readonly feed: (lane: Lane, now: number) => number;
}

const STARTS_PER_TURN = 32;
/** A lane whose oldest request has been out that long, with no success since, is under suspicion. */
const SUSPICION_MS = 1_000;

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #turns: Record<Kind, Turns> = { fresh: new Turns(), retry: new Turns() };
  readonly #budget: SocketBudget;
  readonly #alarms: Alarms;
  readonly #started = new Map<LaneItem, { kind: Kind; at: number; lane: Lane }>();
  /** Lanes under suspicion that wait until the sockets are less crowded. */
  readonly #parked = new Set<Lane>();
  #pumping = false;
  #preferRetry = false;
  #stopped = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#budget = new SocketBudget(options.maxSockets, options.retrySocketShare);
    this.#alarms = new Alarms(options.clock, (lane) => this.consider(lane));
  }

  get inFlight(): number {
    return this.#budget.total;
  }

  /** When it was taken for sending; undefined if its request has ended. */
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

  /** Looks at a lane after anything happened to it: is it ready, when will it be, does it need more? */
  consider(lane: Lane): void {
    if (lane.closed || this.#stopped) return;
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
    const lookAgainAt = this.#options.feed(lane, now);
    if (lookAgainAt < Number.POSITIVE_INFINITY) this.#alarms.set(lane, lookAgainAt);
  }

  /** The request of a delivery has ended: its socket is free. */
  freed(item: LaneItem): void {
    const started = this.#started.get(item);
    if (started === undefined) return;
    this.#started.delete(item);
    this.#budget.inFlight[started.kind] -= 1;
    if (!this.#budget.crowded) this.#unparkOne();
    this.consider(started.lane);
    this.pumpSoon();
  }

  /** One for one: thousands of them would otherwise be looked at for every socket that gets free. */
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
    for (let starts = 0; starts < STARTS_PER_TURN; starts += 1) {
      if (!this.#options.mayStart()) return;
      const kind = this.#nextKind();
      if (kind === null) return;
      this.#startNext(kind);
    }
    this.pumpSoon();
  }

  /** Fresh and retry take turns as long as both have work and room. */
  #nextKind(): Kind | null {
    const fresh = !this.#turns.fresh.empty && this.#budget.has('fresh');
    const retry = !this.#turns.retry.empty && this.#budget.has('retry');
    if (!fresh && !retry) return null;
    this.#preferRetry = !this.#preferRetry;
    return fresh && (!retry || !this.#preferRetry) ? 'fresh' : 'retry';
  }

  #startNext(kind: Kind): void {
    const { clock } = this.#options;
    const lane = this.#turns[kind].next();
    if (lane === undefined || lane.closed || this.#options.isLeaving(lane.shard)) return;
    const now = clock.now();
    const monotonic = clock.monotonic();
    if (lane.readyAt(now, monotonic) > now || !lane.kindsReady(now)[kind]) return this.consider(lane);
    // One request at a time is let through as long as can be: without it a lane could never prove itself.
    const crowded = lane.inFlight > 0 ? this.#budget.crowded : this.#budget.nearlyFull;
    if (crowded && this.#isSuspect(lane, now)) {
      this.#parked.add(lane);
      return;
    }
    // Where there is no room for a retry, it is not waited for: retries never delay fresh ones.
    const chosen = kind === 'fresh' && this.#budget.has('retry') && lane.owesRetry(now) ? 'retry' : kind;
    const item = lane.take(chosen, now, monotonic);
    if (item !== null) {
      this.#budget.inFlight[chosen] += 1;
      this.#started.set(item, { kind: chosen, at: now, lane });
      this.#options.start(lane, item);
    }
    this.consider(lane);
  }

  #isSuspect(lane: Lane, now: number): boolean {
    const hanging = now - lane.oldestStartAt > SUSPICION_MS && lane.lastSuccessAt < lane.oldestStartAt;
    return hanging || lane.failingSince !== null;
  }
}
