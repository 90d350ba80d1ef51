/** The lanes of the shards that this worker owns, one for each of their endpoints. */
import type { Uuid } from '../domain/ids.ts';
import type { Lane } from './lane.ts';

export class LaneRegistry {
  readonly #lanes = new Map<Uuid, Lane>();
  readonly #byShard = new Map<number, Set<Lane>>();

  get size(): number {
    return this.#lanes.size;
  }

  get openCircuits(): number {
    let open = 0;
    for (const lane of this.#lanes.values()) if (!lane.breaker.allowsTraffic) open += 1;
    return open;
  }

  get(endpointId: Uuid): Lane | undefined {
    return this.#lanes.get(endpointId);
  }

  all(): Iterable<Lane> {
    return this.#lanes.values();
  }

  ofShard(shard: number): Iterable<Lane> {
    return this.#byShard.get(shard) ?? [];
  }

  hasShard(shard: number): boolean {
    return this.#byShard.has(shard);
  }

  /** True if a request of the shard is on the wire, or its result is not recorded yet. */
  isBusy(shard: number): boolean {
    for (const lane of this.ofShard(shard)) if (!lane.isIdle) return true;
    return false;
  }

  /** Registers a shard, without lanes yet. */
  addShard(shard: number): void {
    this.#byShard.set(shard, new Set());
  }

  removeShard(shard: number): void {
    this.#byShard.delete(shard);
  }

  add(lane: Lane): void {
    this.#lanes.set(lane.id, lane);
    this.#byShard.get(lane.shard)?.add(lane);
  }

  remove(lane: Lane): void {
    this.#lanes.delete(lane.id);
    this.#byShard.get(lane.shard)?.delete(lane);
  }
}
