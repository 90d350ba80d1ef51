/**
 * Finds deliveries whose notification was lost. A worker with few lanes reads all of them in every sweep. With more, a
 * sweep reads the lanes of endpoints with recently accepted events, and a part of the others in turn. So a sweep
 * costs the same however many endpoints there are.
 *
 *   reading ──no acceptance number was assigned for 30 seconds, and all lanes were read since──▶ resting
 *      ▲                                                                                            │
 *      └── a number was assigned, notifications were lost, or the store was replaced ───────────────┘
 *
 * A delivery whose notification was lost has a new acceptance number. So while none is assigned, a resting sweeper reads
 * only lanes that have deliveries, and FIFO lanes: slices of a large fan-out reach those under the number of their event.
 * In every twelfth sweep it reads the others too, in case this reasoning is wrong.
 */
import type { Clock } from '../domain/clock.ts';
import { inTurns } from '../domain/in-turns.ts';
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
  readonly refill: Pick<Refill, 'request' | 'isStoreQuiet'>;
  readonly scheduler: Pick<Scheduler, 'consider'>;
  readonly janitor: Pick<Janitor, 'expire'>;
  /** How many lanes a sweep reads. */
  readonly lanesPerSweep?: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** How many lanes one sweep reads: five round trips. The number does not come from a measurement. */
const LANES_PER_SWEEP = 1_000;
/**
 * A full load steps over all recently settled rows. So a worker whose sweeps read every lane fully loads each lane
 * only in every 60th sweep.
 */
const ROUNDS_PER_FULL_LOAD = 60;
/** A resting sweeper reads a lane once a minute, and fully loads it in every fifth of these reads. */
const RESTING_ROUNDS_PER_FULL_LOAD = 5;
/** A resting sweeper reads all lanes once in this many sweeps. */
const SWEEPS_PER_RESTING_READ = 12;
/** A lane with a backlog that it cannot send soon is read in one of this many sweeps. A read looks back further than that. */
const SWEEPS_PER_READ_OF_BEHIND = 3;
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
  /** How many lanes must be read before the sweeper may rest. Infinity: the store was not quiet at the last sweep. */
  #unreadLanes = Number.POSITIVE_INFINITY;
  /** How many sweeps the sweeper has rested. 0: it does not rest. */
  #restingSweeps = 0;
  #sweeps = 0;
  #isStopped = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#lanesPerSweep = options.lanesPerSweep ?? LANES_PER_SWEEP;
  }

  start(): void {
    if (this.#cancelTimer === null && !this.#isStopped) this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  /** Sweeps all lanes now, if the sweeper runs. Call this when notifications may have been lost. */
  sweepNow(): void {
    if (this.#cancelTimer === null) return;
    this.#unreadLanes = Number.POSITIVE_INFINITY;
    void this.#sweepAll();
  }

  async #sweepAll(): Promise<void> {
    await this.#sweep();
    for await (const lanes of inTurns(this.#options.lanes.all()))
      for (const lane of lanes) if (isEnabled(lane)) this.#options.refill.request(lane, 'sweep');
  }

  #schedule(): void {
    this.#cancelTimer = this.#options.clock.after(this.#options.everyMs, () => {
      void this.#sweep().then(() => {
        if (!this.#isStopped) this.#schedule();
      });
    });
  }

  async #sweep(): Promise<void> {
    const { lanes, laneKeeper } = this.#options;
    this.#sweeps += 1;
    laneKeeper.endCarefulMode();
    const blocked: Lane[] = [];
    const busy: Lane[] = [];
    for await (const turn of inTurns(lanes.all())) {
      if (this.#isStopped) return;
      for (const lane of turn) {
        if (lane.isBlocked) blocked.push(lane);
        const hasDeliveries = lane.size > 0 || !lane.readProgress.isComplete;
        if (hasDeliveries) this.#check(lane);
        if ((hasDeliveries || lane.isFifo) && isEnabled(lane)) busy.push(lane);
      }
    }
    laneKeeper.loadProbes();
    void laneKeeper.refreshBlocked(blocked);
    if (this.#updateResting(busy.length)) {
      for (const lane of busy) this.#read(lane, 'sweep');
      return;
    }
    if (lanes.size > this.#lanesPerSweep) void this.#readRecent();
    this.#readNext();
  }

  /** Decides whether the sweeper rests. Returns true if this sweep reads only busy lanes: every twelfth reads all. */
  #updateResting(busyLanes: number): boolean {
    const { lanes, refill } = this.#options;
    if (!refill.isStoreQuiet) this.#unreadLanes = Number.POSITIVE_INFINITY;
    else if (this.#unreadLanes === Number.POSITIVE_INFINITY) this.#unreadLanes = lanes.size;
    const isResting = refill.isStoreQuiet && this.#unreadLanes <= 0 && busyLanes <= this.#lanesPerSweep;
    this.#restingSweeps = isResting ? this.#restingSweeps + 1 : 0;
    return isResting && this.#restingSweeps % SWEEPS_PER_RESTING_READ !== 0;
  }

  /** Checks a lane that has deliveries, without reading the store. */
  #check(lane: Lane): void {
    const { janitor, scheduler } = this.#options;
    if (!isEnabled(lane)) return;
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
      this.#unreadLanes -= 1;
      this.#readInTurn(next.value);
    }
  }

  #readInTurn(lane: Lane): void {
    const { lanes, laneKeeper } = this.#options;
    const hasManyLanes = lanes.size > this.#lanesPerSweep;
    // Different lanes are loaded fully in different rounds: while an old transaction is open, a full load steps over all settled rows.
    const rounds = this.#restingSweeps > 0 ? RESTING_ROUNDS_PER_FULL_LOAD : ROUNDS_PER_FULL_LOAD;
    const isFullLoad = (this.#rounds + lane.shard) % (hasManyLanes ? 4 : rounds) === 0;
    if (!isEnabled(lane)) {
      // An event that was matched just before the endpoint was disabled may have been committed after the janitor
      // skipped the others.
      if (isFullLoad) laneKeeper.reconcileLane(lane);
      return;
    }
    // With many lanes, the last read of this one is longer ago than a sweep looks back.
    this.#read(lane, isFullLoad || hasManyLanes ? 'all' : 'sweep');
    if (isFullLoad && lane.isFifo) laneKeeper.moveToFifo(lane);
  }

  async #readRecent(): Promise<void> {
    const { queue, clock, lanes, onProblem } = this.#options;
    try {
      for await (const ids of inTurns(await queue.listRecent(clock.now() - RECENT_MS))) {
        for (const id of ids) {
          const lane = lanes.get(id);
          if (lane !== undefined && !this.#isStopped) this.#read(lane, 'sweep');
        }
      }
    } catch (error) {
      onProblem('find recent deliveries', error);
    }
  }

  #read(lane: Lane, scope: 'sweep' | 'all'): void {
    if (!isEnabled(lane)) return;
    if (scope === 'sweep' && this.#canSkip(lane)) return;
    this.#options.refill.request(lane, scope);
  }

  /**
   * True if this sweep need not read the lane: it knows that the store has more, and sends slowly or not at all. Such lanes
   * are read in every third sweep. A read looks back further than that, so it misses nothing.
   */
  #canSkip(lane: Lane): boolean {
    const { clock, everyMs } = this.#options;
    if (everyMs * SWEEPS_PER_READ_OF_BEHIND >= RECENT_MS) return false;
    if ((this.#sweeps + lane.shard) % SWEEPS_PER_READ_OF_BEHIND === 0) return false;
    if (lane.isFifo || !lane.readProgress.hasMoreFresh) return false;
    return !lane.isFlowing || lane.responseTimes.isSlow(clock.now());
  }
}

const isEnabled = ({ endpoint }: Lane): boolean => endpoint.enabled && !endpoint.deleted;
