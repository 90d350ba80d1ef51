/**
 * Checks all lanes regularly, to find deliveries whose notification was lost. Every 60th sweep of a lane loads all its
 * waiting deliveries.
 */
import type { Clock } from '../domain/clock.ts';
import type { Service } from '../domain/lifecycle.ts';
import type { Janitor } from './janitor.ts';
import type { Lane } from './lane.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Refill } from './refill.ts';
import type { Scheduler } from './scheduler.ts';

export interface SweeperOptions {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly lanes: LaneRegistry;
  readonly laneKeeper: LaneKeeper;
  readonly refill: Pick<Refill, 'request'>;
  readonly scheduler: Pick<Scheduler, 'consider'>;
  readonly janitor: Pick<Janitor, 'expire'>;
}

const SWEEPS_PER_FULL_LOAD = 60;

export class Sweeper implements Service {
  readonly #options: SweeperOptions;
  #cancelTimer: (() => void) | null = null;
  #sweeps = 0;
  #stopped = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#cancelTimer === null && !this.#stopped) this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  /** Sweeps now, if the sweeper runs. Call this when notifications may have been lost. */
  sweepNow(): void {
    if (this.#cancelTimer !== null) this.#sweep();
  }

  #schedule(): void {
    this.#cancelTimer = this.#options.clock.after(this.#options.everyMs, () => {
      this.#sweep();
      if (!this.#stopped) this.#schedule();
    });
  }

  #sweep(): void {
    const { lanes, laneKeeper } = this.#options;
    this.#sweeps += 1;
    laneKeeper.endCarefulMode();
    for (const lane of lanes.all()) this.#sweepLane(lane);
    laneKeeper.loadProbes();
    void laneKeeper.refreshBlocked([...lanes.all()].filter((lane) => lane.blocked));
  }

  #sweepLane(lane: Lane): void {
    const { laneKeeper, refill, scheduler, janitor } = this.#options;
    // Not all lanes in the same sweep: while an old transaction is open, a full load steps over all settled rows.
    const isFullLoad = (this.#sweeps + lane.shard) % SWEEPS_PER_FULL_LOAD === 0;
    if (!lane.endpoint.enabled || lane.endpoint.deleted) {
      // An event that was accepted just before the endpoint was disabled may have been committed after it was skipped.
      if (isFullLoad) laneKeeper.reconcileLane(lane);
      return;
    }
    refill.request(lane, isFullLoad ? 'all' : 'sweep');
    if (isFullLoad && lane.fifo) laneKeeper.moveToFifo(lane);
    janitor.expire(lane);
    scheduler.consider(lane);
  }
}
