/** Hands shards over to other workers without sending a delivery twice. */
import type { Attempts } from './attempts.ts';
import type { BatchRecorder } from './batch-recorder.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Ownership, OwnershipListener } from './ownership.ts';
import { type RequestsOnWireOptions, recordOnWire } from './requests-on-wire.ts';

export interface ShardHandOverOptions extends RequestsOnWireOptions {
  readonly ownership: Pick<Ownership, 'release'>;
  readonly lanes: LaneRegistry;
  readonly laneKeeper: Pick<LaneKeeper, 'onShardsLost'>;
  readonly attempts: Pick<Attempts, 'waitForEnd'>;
  readonly batchRecorder: Pick<BatchRecorder, 'flush'>;
}

/** How long to wait for the requests of surplus shards. */
const SURPLUS_WAIT_MS = 1_000;

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
    await recordOnWire(
      busy.flatMap((shard) => [...lanes.ofShard(shard)]),
      this.#options,
    );
    await this.#release(busy);
  }

  async #release(shards: readonly number[]): Promise<void> {
    // Only the owner can record the end of its batches.
    await this.#options.batchRecorder.flush();
    this.#options.laneKeeper.onShardsLost(shards);
    await this.#options.ownership.release(shards);
  }
}
