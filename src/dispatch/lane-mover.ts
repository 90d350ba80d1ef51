/**
 * Moves lanes of endpoints whose region has changed to the workers of their new region (docs/adr/0030-regions.md).
 *
 *   region changes ──▶ the lane starts nothing more ──▶ idle, or a second is over ──▶ closed ──▶ moved in the store
 *
 * Only the owner of the shard that the lane is in moves it, after it has closed the lane. If that shard has no owner, the
 * worker that should have the lane moves it.
 */
import { type Endpoint, isMoving, shardOfLane, wantedShardOf } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { OwnershipStore, TakenShard } from '../ports/ownership-store.ts';
import type { Attempts } from './attempts.ts';
import type { BatchRecorder } from './batch-recorder.ts';
import type { Lane } from './lane.ts';
import type { LaneKeeper } from './lane-keeper.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Ownership, OwnershipListener } from './ownership.ts';
import { type RequestsOnWireOptions, recordOnWire } from './requests-on-wire.ts';

export interface LaneMoverOptions extends RequestsOnWireOptions {
  readonly store: Pick<OwnershipStore, 'moveLanes'>;
  readonly endpoints: Pick<EndpointDirectory, 'all' | 'get' | 'refresh'>;
  readonly ownership: Pick<Ownership, 'owns' | 'workerId'>;
  readonly lanes: LaneRegistry;
  readonly laneKeeper: Pick<LaneKeeper, 'closeLane'>;
  readonly attempts: Pick<Attempts, 'waitForEnd'>;
  readonly batchRecorder: Pick<BatchRecorder, 'flush'>;
}

/** How long to wait for the requests of a lane. */
const MAX_WAIT_MS = 1_000;
const RETRY_MS = 1_000;
const LANES_PER_MOVE = 500;

export class LaneMover implements OwnershipListener {
  readonly #options: LaneMoverOptions;
  readonly #leaving = new Set<Lane>();
  /** Endpoints whose lanes this worker may have to move. */
  readonly #pending = new Set<Uuid>();
  #running: Promise<void> | null = null;
  #cancelRetry: (() => void) | null = null;
  #isStopped = false;

  constructor(options: LaneMoverOptions) {
    this.#options = options;
  }

  /** A move that is under way may still take effect: this worker has closed the lane. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
  }

  onEndpointsChanged(changed: readonly Endpoint[]): void {
    for (const endpoint of changed) if (isMoving(endpoint)) this.#consider(endpoint);
  }

  onShardsTaken(taken: readonly TakenShard[]): void {
    const shards = new Set(taken.map(({ shard }) => shard));
    for (const endpoint of this.#options.endpoints.all())
      if (isMoving(endpoint) && (shards.has(shardOfLane(endpoint)) || shards.has(wantedShardOf(endpoint))))
        this.#consider(endpoint);
  }

  #consider(endpoint: Endpoint): void {
    const { lanes, ownership } = this.#options;
    const lane = lanes.get(endpoint.id);
    if (lane !== undefined) return void this.#handOver(lane);
    if (ownership.owns(shardOfLane(endpoint))) this.#moveNow(endpoint.id);
    else if (ownership.owns(wantedShardOf(endpoint))) {
      // If the shard has an owner, it moves the lane within moments.
      this.#pending.add(endpoint.id);
      this.#retryLater();
    }
  }

  /** Closes the lane when its requests have ended or a second is over, and then moves it. */
  async #handOver(lane: Lane): Promise<void> {
    const { clock, attempts, batchRecorder, laneKeeper } = this.#options;
    if (this.#leaving.has(lane)) return;
    this.#leaving.add(lane);
    const until = clock.monotonic() + MAX_WAIT_MS;
    while (!lane.isIdle && this.#mustLeave(lane) && clock.monotonic() < until)
      await attempts.waitForEnd(until - clock.monotonic());
    if (!lane.isIdle && this.#mustLeave(lane)) await recordOnWire([lane], this.#options);
    // Only the owner can record the end of its batches.
    if (this.#mustLeave(lane)) await batchRecorder.flush();
    this.#leaving.delete(lane);
    if (!this.#mustLeave(lane)) return;
    laneKeeper.closeLane(lane);
    this.#moveNow(lane.id);
  }

  /** False if its endpoint got its old region back or was deleted, or if this worker has lost the shard. */
  #mustLeave(lane: Lane): boolean {
    return !this.#isStopped && !lane.isClosed && lane.isLeaving;
  }

  #moveNow(id: Uuid): void {
    this.#pending.add(id);
    this.#running ??= this.#movePending().finally(() => {
      this.#running = null;
      if (this.#pending.size > 0) this.#retryLater();
    });
  }

  async #movePending(): Promise<void> {
    const { store, endpoints, ownership, onProblem } = this.#options;
    for (;;) {
      const moving = this.#takeMovable();
      if (moving.length === 0 || this.#isStopped) return;
      try {
        await store.moveLanes(ownership.workerId, moving);
        await endpoints.refresh();
      } catch (error) {
        if (!this.#isStopped) onProblem('move lanes to another region', error);
      }
      const isDone = moving.every((endpoint) => endpoints.get(endpoint.id) !== endpoint);
      if (!isDone) {
        for (const { id } of moving) this.#pending.add(id);
        return;
      }
    }
  }

  /** Removes the next endpoints from those that are pending, and returns those whose lanes this worker may move. */
  #takeMovable(): Endpoint[] {
    const { endpoints, lanes, ownership } = this.#options;
    const movable: Endpoint[] = [];
    for (const id of this.#pending) {
      if (movable.length === LANES_PER_MOVE) break;
      this.#pending.delete(id);
      const endpoint = endpoints.get(id);
      if (endpoint === undefined || !isMoving(endpoint) || lanes.get(id) !== undefined) continue;
      const isConcerned = ownership.owns(shardOfLane(endpoint)) || ownership.owns(wantedShardOf(endpoint));
      if (isConcerned) movable.push(endpoint);
    }
    return movable;
  }

  #retryLater(): void {
    if (this.#cancelRetry !== null || this.#isStopped) return;
    this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => {
      this.#cancelRetry = null;
      const [id] = this.#pending;
      if (id !== undefined) this.#moveNow(id);
    });
  }
}
