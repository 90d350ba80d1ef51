/**
 * Opens, changes and closes lanes when this worker takes or loses shards and when endpoints change. Loads the state of
 * lanes from the store; `Refill` loads their deliveries.
 */
import type { Clock } from '../domain/clock.ts';
import { type Endpoint, shardOf } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import { Pace } from '../domain/pace.ts';
import type { BatchLog, OpenBatch } from '../ports/batch-log.ts';
import type { LaneReader, LaneState, LoadedDelivery } from '../ports/delivery-queue.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { Channels } from '../ports/notifier.ts';
import type { TakenShard } from '../ports/ownership-store.ts';
import type { CarefulShards } from './careful-shards.ts';
import { HEALTHY } from './healthy-lane.ts';
import type { Janitor } from './janitor.ts';
import { Lane } from './lane.ts';
import type { LaneBudget } from './lane-budget.ts';
import type { LaneRegistry } from './lane-registry.ts';
import type { Ownership, OwnershipListener } from './ownership.ts';
import { type LoadScope, type Refill, toItem } from './refill.ts';
import type { Scheduler } from './scheduler.ts';

export interface LaneKeeperOptions {
  readonly queue: Pick<LaneReader, 'loadStates' | 'loadProbes'> & Pick<BatchLog, 'loadOpenBatches'>;
  readonly clock: Clock;
  readonly endpoints: Pick<EndpointDirectory, 'all' | 'get'>;
  readonly ownership: Pick<Ownership, 'epochOf'>;
  readonly lanes: LaneRegistry;
  readonly budget: LaneBudget;
  readonly scheduler: Scheduler;
  readonly refill: Refill;
  readonly janitor: Janitor;
  readonly carefulShards: CarefulShards;
  readonly onProblem: (what: string, error: unknown) => void;
}

const LANES_PER_STATE_READ = 500;
const RETRY_PAUSE_MS = 500;

export class LaneKeeper implements OwnershipListener {
  readonly #options: LaneKeeperOptions;
  #loadingProbes: Promise<void> | null = null;
  #loadProbesAgain = false;
  #stopped = false;

  constructor(options: LaneKeeperOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stopped = true;
  }

  // --- shards ---------------------------------------------------------------------------------------------

  onShardsTaken(taken: readonly TakenShard[]): void {
    const { lanes, carefulShards, endpoints } = this.#options;
    for (const shard of taken) {
      lanes.addShard(shard.shard);
      carefulShards.onShardTaken(shard);
    }
    const shards = new Set(taken.map(({ shard }) => shard));
    void this.#openLanes([...endpoints.all()].filter(({ id }) => shards.has(shardOf(id))));
  }

  onShardsLost(shards: readonly number[]): void {
    const { lanes } = this.#options;
    for (const shard of shards) {
      for (const lane of lanes.ofShard(shard)) this.#closeLane(lane);
      lanes.removeShard(shard);
    }
  }

  async #openLanes(endpoints: readonly Endpoint[]): Promise<void> {
    const { ownership } = this.#options;
    for (let i = 0; i < endpoints.length; i += LANES_PER_STATE_READ) {
      const chunk = endpoints.slice(i, i + LANES_PER_STATE_READ);
      const epochs = chunk.map(({ id }) => ownership.epochOf(shardOf(id)));
      const ids = chunk.map(({ id }) => id);
      const [states, probes, openBatches] = await Promise.all([
        this.#loadStates(ids),
        this.#loadRequestedProbes(),
        this.#loadOpenBatches(ids),
      ]);
      for (const [index, id] of ids.entries())
        this.#openLane(id, epochs[index], states.get(id) ?? HEALTHY, probes.get(id), openBatches.get(id));
    }
  }

  #openLane(
    id: Uuid,
    epoch: number | undefined,
    state: LaneState,
    requestedProbe: LoadedDelivery | undefined,
    openBatches: readonly OpenBatch[] | undefined,
  ): void {
    const { lanes, ownership, endpoints, budget, carefulShards, clock } = this.#options;
    const shard = shardOf(id);
    const endpoint = endpoints.get(id);
    // The shard may be lost, or lost and taken again, since its states were requested.
    const isOutdated = !lanes.hasShard(shard) || ownership.epochOf(shard) !== epoch;
    if (isOutdated || endpoint === undefined || lanes.get(id) !== undefined) return;
    const lane = new Lane(endpoint, state, this.#newPace(endpoint, state.isNew), budget);
    lane.isCareful = carefulShards.has(shard);
    lanes.add(lane);
    if (openBatches !== undefined) lane.batches.adopt(openBatches);
    // Before anything is sent: an earlier owner may have this probe on the wire, and there is only one at a time.
    if (requestedProbe !== undefined) lane.requestProbe(toItem(requestedProbe, lane, clock.now()));
    this.reconcileLane(lane);
  }

  #closeLane(lane: Lane): void {
    lane.close();
    this.#options.lanes.remove(lane);
    this.#options.scheduler.forget(lane);
  }

  /** The bucket starts empty unless the endpoint is new, because an earlier owner may just have used the burst. */
  #newPace({ rateLimit }: Endpoint, isNew: boolean): Pace | null {
    if (rateLimit === null) return null;
    return new Pace(rateLimit, this.#options.clock.monotonic(), isNew ? Math.max(1, rateLimit.burst) : 0);
  }

  // --- endpoints ------------------------------------------------------------------------------------------

  onEndpointsChanged(changed: readonly Endpoint[]): void {
    const { lanes } = this.#options;
    const withoutLane: Endpoint[] = [];
    for (const endpoint of changed) {
      const lane = lanes.get(endpoint.id);
      if (lane !== undefined) this.#changeLane(lane, endpoint);
      else if (lanes.hasShard(shardOf(endpoint.id))) withoutLane.push(endpoint);
    }
    if (withoutLane.length > 0) void this.#openLanes(withoutLane);
  }

  /** Changes the lane in place. A new lane would not know which requests are on the wire, and would send them again. */
  #changeLane(lane: Lane, endpoint: Endpoint): void {
    const before = lane.endpoint;
    lane.reconfigure(endpoint, this.#newPace(endpoint, false));
    if (before.ordering !== endpoint.ordering) lane.clearQueue();
    if (!before.enabled && endpoint.enabled) void this.#restoreHealth(lane);
    void this.refreshBlocked([lane]);
    this.reconcileLane(lane);
  }

  /** Loads the health again, because enabling an endpoint resets its health in the store. */
  async #restoreHealth(lane: Lane): Promise<void> {
    const states = await this.#loadStates([lane.id]);
    lane.restore(states.get(lane.id) ?? HEALTHY);
    this.#options.scheduler.consider(lane);
  }

  /** Loads the deliveries of an enabled endpoint, or skips those of one that is disabled or deleted. */
  reconcileLane(lane: Lane): void {
    const { refill, scheduler, janitor } = this.#options;
    const { endpoint } = lane;
    if (!endpoint.enabled || endpoint.deleted) {
      lane.clearQueue();
      janitor.skip(lane, () => this.#closeLane(lane));
      return;
    }
    // A paused lane must not take memory that others could send from.
    if (endpoint.paused) lane.clearQueue();
    if (lane.fifo) this.moveToFifo(lane);
    refill.request(lane, 'all');
    scheduler.consider(lane);
  }

  /** Gives deliveries that were stored before the endpoint became FIFO their place in the order. */
  moveToFifo(lane: Lane): void {
    const { janitor, refill } = this.#options;
    janitor.moveToFifo(lane, () => refill.request(lane, 'all'));
  }

  // --- deliveries -----------------------------------------------------------------------------------------

  /** Handles the notification of another process that committed deliveries for these endpoints. */
  onWake({ endpointIds, scope }: Channels['wake']): void {
    for (const id of endpointIds) this.wake(id, scope);
  }

  /** Loads the lane again after any process committed, replayed or discarded deliveries of this endpoint. */
  wake(endpointId: Uuid, scope: LoadScope = 'recent'): void {
    const lane = this.#options.lanes.get(endpointId);
    if (lane !== undefined) this.reload(lane, scope);
  }

  /** Loads the probes that somebody requested, and lets the lanes of this worker send theirs. */
  loadProbes(): void {
    if (this.#options.lanes.size === 0) return;
    this.#loadProbesAgain = true;
    this.#loadingProbes ??= this.#loadProbesUntilDone().finally(() => {
      this.#loadingProbes = null;
    });
  }

  async #loadProbesUntilDone(): Promise<void> {
    const { clock, lanes, scheduler } = this.#options;
    while (this.#loadProbesAgain && !this.#stopped) {
      this.#loadProbesAgain = false;
      for (const row of (await this.#loadRequestedProbes()).values()) {
        const lane = lanes.get(row.endpointId);
        if (lane === undefined) continue;
        lane.requestProbe(toItem(row, lane, clock.now()));
        scheduler.consider(lane);
      }
    }
  }

  reload(lane: Lane, scope: LoadScope): void {
    this.#options.refill.request(lane, scope);
    void this.refreshBlocked([lane]);
  }

  /** Call this when an attempt has ended: the lane may be able to send the next delivery. */
  onAttemptEnded(lane: Lane): void {
    const { scheduler } = this.#options;
    const { endpoint } = lane;
    if ((!endpoint.enabled || endpoint.deleted) && !lane.isClosed && lane.isIdle) this.reconcileLane(lane);
    else scheduler.consider(lane);
    scheduler.pumpSoon();
  }

  /** Reads whether a dead letter blocks these lanes: it may have been replayed, discarded or restored. */
  async refreshBlocked(lanes: readonly Lane[]): Promise<void> {
    const blockable = lanes.filter(
      (lane) => lane.blocked || (lane.fifo && lane.endpoint.fifoOnDead === 'block'),
    );
    if (blockable.length === 0) return;
    // "Not blocked" is trustworthy only for lanes that were blocked and idle: others may get blocked during the read.
    const unblockable = new Set(blockable.filter((lane) => lane.blocked && lane.isIdle));
    const states = await this.#loadStates(blockable.map(({ id }) => id));
    for (const lane of blockable) {
      if (states.get(lane.id)?.blocked ?? false) lane.blocked = true;
      else if (unblockable.has(lane)) lane.blocked = false;
      this.#options.scheduler.consider(lane);
    }
  }

  /** Ends careful mode in shards without a crash during the last window. */
  endCarefulMode(): void {
    const { lanes, carefulShards } = this.#options;
    for (const shard of carefulShards.takeExpired())
      for (const lane of lanes.ofShard(shard)) lane.isCareful = false;
  }

  #loadStates(ids: readonly Uuid[]): Promise<Map<Uuid, LaneState>> {
    return this.#readUntilDone('read the state of endpoints', () => this.#options.queue.loadStates(ids));
  }

  /** Loads the batches that earlier owners may have on the wire, by endpoint. */
  #loadOpenBatches(ids: readonly Uuid[]): Promise<Map<Uuid, OpenBatch[]>> {
    return this.#readUntilDone('read open batches', async () =>
      Map.groupBy(await this.#options.queue.loadOpenBatches(ids), ({ endpointId }) => endpointId),
    );
  }

  /** Loads the requested probes of all endpoints, by endpoint. */
  #loadRequestedProbes(): Promise<Map<Uuid, LoadedDelivery>> {
    return this.#readUntilDone('read requested probes', async () => {
      const rows = await this.#options.queue.loadProbes();
      return new Map(rows.map((row) => [row.endpointId, row]));
    });
  }

  /** Repeats the read until it succeeds. Returns an empty map if the engine stops. */
  async #readUntilDone<T>(what: string, read: () => Promise<Map<Uuid, T>>): Promise<Map<Uuid, T>> {
    const { clock, onProblem } = this.#options;
    for (;;) {
      try {
        return await read();
      } catch (error) {
        onProblem(what, error);
        if (this.#stopped) return new Map();
        await new Promise<void>((resolve) => clock.after(RETRY_PAUSE_MS, resolve));
      }
    }
  }
}
