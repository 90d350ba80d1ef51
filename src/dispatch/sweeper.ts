/**
 * Finds deliveries whose notification was lost. A worker with few lanes reads all of them in every sweep. With more, a
 * sweep reads those of endpoints that recently accepted events belong to, and a part of the others in turn. So a sweep
 * costs the same however many endpoints there are.
 */
import type { Clock } from '../domain/clock.ts';
import type { Service } from '../domain/lifecycle.ts';
import type { LaneReader } from '../ports/delivery-queue.ts';
import type { Janitor } from './janitor.ts';
import type { Lane } from './lane.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Refill } from './refill.ts';
import type { Scheduler } from './scheduler.ts';

export interface SweeperOptions {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly queue: Pick<LaneReader, 'listRecent'>;
  readonly lanes: LaneRegistry;
  readonly laneKeeper: Pick<
    LaneKeeper,
    'endCarefulMode' | 'refreshBlocked' | 'reconcileLane' | 'moveToFifo' | 'loadProbes'
  >;
  readonly refill: Pick<Refill, 'request'>;
  readonly scheduler: Pick<Scheduler, 'consider'>;
  readonly janitor: Pick<Janitor, 'expire'>;
  /** How many lanes a sweep reads. */
  readonly lanesPerSweep?: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Five round trips. Not tuned by a measurement. */
const LANES_PER_SWEEP = 1_000;
/**
 * A full load steps over all recently settled rows. So a worker whose sweeps read every lane fully loads each lane
 * only in every 60th sweep.
 */
const ROUNDS_PER_FULL_LOAD = 60;
/** Longer than it takes from the id of an event to its commit, repeated tries included. */
const RECENT_MS = 30_000;

export class Sweeper implements Service {
  readonly #options: SweeperOptions;
  readonly #lanesPerSweep: number;
  #cancelTimer: (() => void) | null = null;
  /** Where the next sweep continues. Null: at the beginning. */
  #position: Iterator<Lane> | null = null;
  /** How often all lanes were read. */
  #rounds = 0;
  #stopped = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#lanesPerSweep = options.lanesPerSweep ?? LANES_PER_SWEEP;
  }

  start(): void {
    if (this.#cancelTimer === null && !this.#stopped) this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  /** Sweeps all lanes now, if the sweeper runs. Call this when notifications may have been lost. */
  sweepNow(): void {
    if (this.#cancelTimer === null) return;
    this.#sweep();
    for (const lane of this.#options.lanes.all()) this.#read(lane, 'sweep');
  }

  #schedule(): void {
    this.#cancelTimer = this.#options.clock.after(this.#options.everyMs, () => {
      this.#sweep();
      if (!this.#stopped) this.#schedule();
    });
  }

  #sweep(): void {
    const { lanes, laneKeeper } = this.#options;
    laneKeeper.endCarefulMode();
    const blocked: Lane[] = [];
    for (const lane of lanes.all()) {
      if (lane.blocked) blocked.push(lane);
      if (lane.size > 0 || !lane.readProgress.isComplete) this.#check(lane);
    }
    laneKeeper.loadProbes();
    void laneKeeper.refreshBlocked(blocked);
    if (lanes.size > this.#lanesPerSweep) void this.#readRecent();
    this.#readNext();
  }

  /** Checks a lane that has deliveries, without reading the store. */
  #check(lane: Lane): void {
    const { janitor, scheduler } = this.#options;
    if (!lane.endpoint.enabled || lane.endpoint.deleted) return;
    janitor.expire(lane);
    scheduler.consider(lane);
  }

  /** Reads the lanes whose turn it is. */
  #readNext(): void {
    const { lanes } = this.#options;
    for (let count = Math.min(lanes.size, this.#lanesPerSweep); count > 0; count -= 1) {
      this.#position ??= lanes.all()[Symbol.iterator]();
      const next = this.#position.next();
      if (next.done === true) {
        this.#position = null;
        this.#rounds += 1;
        count += 1;
        continue;
      }
      this.#readInTurn(next.value);
    }
  }

  #readInTurn(lane: Lane): void {
    const { lanes, laneKeeper } = this.#options;
    const hasManyLanes = lanes.size > this.#lanesPerSweep;
    // Not all lanes in the same round: while an old transaction is open, a full load steps over all settled rows.
    const isFullLoad = (this.#rounds + lane.shard) % (hasManyLanes ? 4 : ROUNDS_PER_FULL_LOAD) === 0;
    if (!lane.endpoint.enabled || lane.endpoint.deleted) {
      // An event that was matched just before the endpoint was disabled may have been committed after the janitor
      // skipped the others.
      if (isFullLoad) laneKeeper.reconcileLane(lane);
      return;
    }
    // With many lanes, the last read of this one is longer ago than a sweep looks back.
    this.#read(lane, isFullLoad || hasManyLanes ? 'all' : 'sweep');
    if (isFullLoad && lane.fifo) laneKeeper.moveToFifo(lane);
  }

  async #readRecent(): Promise<void> {
    const { queue, clock, lanes, onProblem } = this.#options;
    try {
      for (const id of await queue.listRecent(clock.now() - RECENT_MS)) {
        const lane = lanes.get(id);
        if (lane !== undefined && !this.#stopped) this.#read(lane, 'sweep');
      }
    } catch (error) {
      onProblem('find recent deliveries', error);
    }
  }

  #read(lane: Lane, scope: 'sweep' | 'all'): void {
    if (!lane.endpoint.enabled || lane.endpoint.deleted) return;
    this.#options.refill.request(lane, scope);
  }
}
