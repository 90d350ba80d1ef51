/** Hands shards over to other workers without sending a delivery twice. */
import type { Clock } from '../domain/clock.ts';
import type { StartRecorder } from '../ports/delivery-queue.ts';
import type { Attempts } from './attempts.ts';
import type { BatchRecorder } from './batch-recorder.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Ownership, OwnershipListener } from './ownership.ts';
import type { Scheduler } from './scheduler.ts';

export interface ShardHandOverOptions {
  readonly queue: Pick<StartRecorder, 'recordOnWire'>;
  readonly clock: Clock;
  readonly ownership: Pick<Ownership, 'release'>;
  readonly lanes: LaneRegistry;
  readonly laneKeeper: Pick<LaneKeeper, 'onShardsLost'>;
  readonly scheduler: Pick<Scheduler, 'startedAt'>;
  readonly attempts: Pick<Attempts, 'waitForEnd'>;
  readonly batchRecorder: Pick<BatchRecorder, 'flush'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** How long to wait for the requests of surplus shards. */
const SURPLUS_WAIT_MS = 1_000;
const MAX_RECORD_TRIES = 5;
const RECORD_PAUSE_MS = 200;

export class ShardHandOver implements OwnershipListener {
  readonly #options: ShardHandOverOptions;

  constructor(options: ShardHandOverOptions) {
    this.#options = options;
  }

  onShardsSurplus(shards: readonly number[]): void {
    void this.handOver(shards, SURPLUS_WAIT_MS);
  }

  /**
   * Releases shards: idle ones at once, the others when their requests have ended or `withinMs` is over. Requests that
   * are on the wire then are recorded, and the next owner waits for their deadline.
   */
  async handOver(shards: readonly number[], withinMs: number): Promise<void> {
    const { clock, lanes, attempts } = this.#options;
    const until = clock.monotonic() + withinMs;
    let busy = [...shards];
    for (;;) {
      const idle = busy.filter((shard) => !lanes.isBusy(shard));
      if (idle.length > 0) {
        busy = busy.filter((shard) => !idle.includes(shard));
        await this.#release(idle);
        // Check again before waiting: the last request may have ended meanwhile.
        continue;
      }
      const leftMs = until - clock.monotonic();
      if (busy.length === 0 || leftMs <= 0) break;
      await attempts.waitForEnd(leftMs);
    }
    if (busy.length === 0) return;
    // Unrecorded, the next owner would send them again: try for as long as a slow store may take.
    for (let tries = 1; !(await this.#recordOnWire(busy)) && tries < MAX_RECORD_TRIES; tries += 1)
      await new Promise<void>((resolve) => clock.after(RECORD_PAUSE_MS, resolve));
    await this.#release(busy);
  }

  async #release(shards: readonly number[]): Promise<void> {
    // Only the owner can record the end of its batches.
    await this.#options.batchRecorder.flush();
    this.#options.laneKeeper.onShardsLost(shards);
    await this.#options.ownership.release(shards);
  }

  /**
   * Returns false if the store failed. Includes deliveries whose result is not recorded yet: otherwise the next owner would
   * send them again.
   */
  async #recordOnWire(shards: readonly number[]): Promise<boolean> {
    const { queue, clock, lanes, scheduler, onProblem } = this.#options;
    const now = clock.now();
    const onWire = shards
      .flatMap((shard) => [...lanes.ofShard(shard)])
      .flatMap((lane) => lane.underWay)
      .map((item) => ({ id: item.delivery.id, startedAt: scheduler.startedAt(item) ?? now }));
    try {
      if (onWire.length > 0) await queue.recordOnWire(onWire);
      return true;
    } catch (error) {
      onProblem('hand over requests on the wire', error);
      return false;
    }
  }
}
