/**
 * Shards whose owners crashed several times recently. A delivery in them may be poison: it crashes the worker that sends
 * it. Their lanes send one request at a time and record each start, so that the next crash identifies the poison.
 */
import type { Clock } from '../domain/clock.ts';
import type { TakenShard } from '../ports/ownership-store.ts';

export interface CarefulShardsOptions {
  readonly clock: Clock;
  /** A shard is careful after this many crashes within the window. */
  readonly afterCrashes: number;
  readonly windowMs: number;
}

export class CarefulShards {
  readonly #options: CarefulShardsOptions;
  readonly #until = new Map<number, number>();

  constructor(options: CarefulShardsOptions) {
    this.#options = options;
  }

  has(shard: number): boolean {
    return this.#until.has(shard);
  }

  onShardTaken({ shard, crashes }: TakenShard): void {
    const { clock, afterCrashes, windowMs } = this.#options;
    if (crashes < afterCrashes) this.#until.delete(shard);
    else this.#until.set(shard, clock.monotonic() + windowMs);
  }

  /** Removes and returns the shards in which no worker crashed for the length of the window. */
  takeExpired(): number[] {
    const now = this.#options.clock.monotonic();
    const expired = [...this.#until].filter(([, until]) => now >= until).map(([shard]) => shard);
    for (const shard of expired) this.#until.delete(shard);
    return expired;
  }
}
