/** The lanes of the shards that this worker owns, one for each of their endpoints. */
import { SHARDS, shardOf } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Lane } from './lane.ts';

export class LaneRegistry {
  /**
   * By the shard of the endpoint in the default region, which its id shows. With regions, lanes of several shards share
   * a map. There is no second map of all lanes: it would cost memory for every endpoint.
   */
  readonly #lanes = new Map<number, Map<Uuid, Lane>>();
  readonly #shards = new Set<number>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get openCircuits(): number {
    let open = 0;
    for (const lane of this.all()) if (!lane.breaker.allowsTraffic) open += 1;
    return open;
  }

  get(endpointId: Uuid): Lane | undefined {
    return this.#lanes.get(shardOf(endpointId))?.get(endpointId);
  }

  *all(): Generator<Lane, void> {
    for (const lanes of this.#lanes.values()) yield* lanes.values();
  }

  *ofShard(shard: number): Generator<Lane, void> {
    for (const lane of this.#lanes.get(shard % SHARDS)?.values() ?? []) if (lane.shard === shard) yield lane;
  }

  hasShard(shard: number): boolean {
    return this.#shards.has(shard);
  }

  /** True if a request of the shard is on the wire, or its result is not recorded yet. */
  isBusy(shard: number): boolean {
    for (const lane of this.ofShard(shard)) if (!lane.isIdle) return true;
    return false;
  }

  /** Registers a shard, without lanes yet. */
  addShard(shard: number): void {
    this.removeShard(shard);
    this.#shards.add(shard);
  }

  removeShard(shard: number): void {
    for (const lane of this.ofShard(shard)) this.remove(lane);
    this.#shards.delete(shard);
  }

  /** Registers its shard too, if it is not registered. */
  add(lane: Lane): void {
    this.#shards.add(lane.shard);
    let lanes = this.#lanes.get(shardOf(lane.id));
    if (lanes === undefined) {
      lanes = new Map();
      this.#lanes.set(shardOf(lane.id), lanes);
    }
    if (!lanes.has(lane.id)) this.#size += 1;
    lanes.set(lane.id, lane);
  }

  /** Removes this lane only: if the worker took the shard again, the endpoint has a new lane, which stays. */
  remove(lane: Lane): void {
    if (this.get(lane.id) !== lane) return;
    this.#lanes.get(shardOf(lane.id))!.delete(lane.id);
    this.#size -= 1;
  }
}
