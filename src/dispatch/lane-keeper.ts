/**
 * Opens, changes and closes lanes when this worker takes or loses shards and when endpoints change. Loads the state of
 * lanes from the store; `Refill` loads their deliveries.
 */
import type { Clock } from '../domain/clock.ts';
import { type Endpoint, isMoving, shardOfLane } from '../domain/endpoint.ts';
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
import { deadlineOf, type LoadScope, ON_THE_WIRE_MARGIN_MS, type Refill, toItem } from './refill.ts';
import type { Scheduler } from './scheduler.ts';
import { correctState } from './stored-times.ts';

export interface LaneKeeperOptions {
  readonly queue: Pick<LaneReader, 'loadStates' | 'loadProbes'> & Pick<BatchLog, 'loadOpenBatches'>;
  readonly clock: Clock;
  readonly endpoints: Pick<EndpointDirectory, 'ofShard' | 'get'>;
  readonly ownership: Pick<Ownership, 'epochOf'>;
  readonly lanes: LaneRegistry;
  readonly budget: LaneBudget;
  readonly scheduler: Scheduler;
  readonly refill: Refill;
  readonly janitor: Janitor;
  readonly carefulShards: CarefulShards;
  readonly retryAfterCapMs: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

const LANES_PER_STATE_READ = 500;
const RETRY_PAUSE_MS = 500;

export class LaneKeeper implements OwnershipListener {
  readonly #options: LaneKeeperOptions;
  #loadingProbes: Promise<void> | null = null;
  #loadProbesAgain = false;
  #isStopped = false;

  constructor(options: LaneKeeperOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  // --- shards ---------------------------------------------------------------------------------------------

  onShardsTaken(taken: readonly TakenShard[]): void {
    const { lanes, carefulShards, endpoints } = this.#options;
    for (const shard of taken) {
      lanes.addShard(shard.shard);
      carefulShards.onShardTaken(shard);
    }
    void this.#openLanes(
      taken.flatMap(({ shard }) => [...endpoints.ofShard(shard)]),
      false,
    );
  }

  onShardsLost(shards: readonly number[]): void {
    const { lanes } = this.#options;
    for (const shard of shards) {
      for (const lane of lanes.ofShard(shard)) this.closeLane(lane);
      lanes.removeShard(shard);
    }
  }

  /** `mayBeNew` false: an earlier owner may have sent to the endpoints, whatever the times in the store say. */
  async #openLanes(endpoints: readonly Endpoint[], mayBeNew: boolean): Promise<void> {
    const { ownership } = this.#options;
    for (let i = 0; i < endpoints.length; i += LANES_PER_STATE_READ) {
      const chunk = endpoints.slice(i, i + LANES_PER_STATE_READ);
      const epochs = chunk.map((endpoint) => ownership.epochOf(shardOfLane(endpoint)));
      const ids = chunk.map(({ id }) => id);
      const [states, probes, openBatches] = await Promise.all([
        this.#loadStates(ids),
        this.#loadRequestedProbes(),
        this.#loadOpenBatches(ids),
      ]);
      for (const [index, id] of ids.entries()) {
        const stored = states.get(id) ?? HEALTHY;
        const state = { ...stored, isNew: stored.isNew && mayBeNew };
        this.#openLane(id, epochs[index], state, probes.get(id), openBatches.get(id));
      }
    }
  }

  #openLane(
    id: Uuid,
    epoch: number | undefined,
    state: LaneState,
    requestedProbe: LoadedDelivery | undefined,
    openBatches: readonly OpenBatch[] | undefined,
  ): void {
    const { lanes, ownership, endpoints, budget, carefulShards, clock, retryAfterCapMs } = this.#options;
    const endpoint = endpoints.get(id);
    // The lane mover takes care of a lane that should be elsewhere.
    if (endpoint === undefined || lanes.get(id) !== undefined || isMoving(endpoint)) return;
    const shard = shardOfLane(endpoint);
    // The shard may be lost, or lost and taken again, since its states were requested.
    if (!lanes.hasShard(shard) || ownership.epochOf(shard) !== epoch) return;
    // An earlier owner of the shard has moved the lane, which this worker has not read yet.
    if (state.shard != null && state.shard !== shard) return;
    const corrected = correctState(state, endpoint, clock, retryAfterCapMs);
    const lane = new Lane(endpoint, corrected, this.#newPace(endpoint, state.isNew), budget);
    lane.retryAfterCapMs = retryAfterCapMs;
    lane.isCareful = carefulShards.has(shard);
    if (!state.isNew) {
      lane.earlierRequestsUntil = clock.now() + endpoint.timeoutMs + ON_THE_WIRE_MARGIN_MS;
      lane.readProgress.takenOverAt = clock.now();
    }
    lanes.add(lane);
    if (openBatches !== undefined) this.#adopt(lane, openBatches);
    // Do this before anything is sent: an earlier owner may have this probe on the wire, and only one may be sent at a time.
    if (requestedProbe !== undefined) lane.requestProbe(toItem(requestedProbe, lane, clock));
    this.reconcileLane(lane);
  }

  #adopt(lane: Lane, openBatches: readonly OpenBatch[]): void {
    lane.batches.adopt(openBatches);
    if (!lane.isFifo) return;
    // All deliveries of a batch may be gone (expunged, expired): then none of them holds the lane.
    const deadlines = openBatches.map(({ startedAt }) => deadlineOf(startedAt, lane, this.#options.clock));
    lane.holdUntil = Math.max(lane.holdUntil, ...deadlines);
  }

  closeLane(lane: Lane): void {
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
      const isHere = lane?.shard === shardOfLane(endpoint);
      if (lane !== undefined && isHere) this.#changeLane(lane, endpoint);
      // The lane can be in another shard only if another worker has owned this shard meanwhile.
      else if (lane !== undefined) this.closeLane(lane);
      if (!isHere && lanes.hasShard(shardOfLane(endpoint))) withoutLane.push(endpoint);
    }
    if (withoutLane.length > 0) void this.#openLanes(withoutLane, true);
  }

  /** Changes the lane in place. A new lane would not know which requests are on the wire, and would send them again. */
  #changeLane(lane: Lane, endpoint: Endpoint): void {
    const before = lane.endpoint;
    lane.reconfigure(endpoint, this.#newPace(endpoint, false));
    lane.isLeaving = isMoving(endpoint);
    if (before.ordering !== endpoint.ordering) lane.clearQueue();
    if (!before.enabled && endpoint.enabled) void this.#restoreHealth(lane);
    void this.refreshBlocked([lane]);
    this.reconcileLane(lane);
  }

  /** Loads the health again, because enabling an endpoint resets its health in the store. */
  async #restoreHealth(lane: Lane): Promise<void> {
    const { clock, retryAfterCapMs } = this.#options;
    const states = await this.#loadStates([lane.id]);
    lane.restore(correctState(states.get(lane.id) ?? HEALTHY, lane.endpoint, clock, retryAfterCapMs));
    this.#options.scheduler.consider(lane);
  }

  /** Loads the deliveries of an enabled endpoint, or skips those of one that is disabled or deleted. */
  reconcileLane(lane: Lane): void {
    const { refill, scheduler, janitor } = this.#options;
    const { endpoint } = lane;
    if (!endpoint.enabled || endpoint.deleted) {
      // The janitor deletes the rows that carry the deadlines of the earlier owner's requests, so the lane keeps the latest one.
      if (lane.isFifo) lane.holdUntil = Math.max(lane.holdUntil, lane.earlierRequestsUntil);
      lane.clearQueue();
      janitor.skip(lane, () => this.closeLane(lane));
      return;
    }
    // A lane that sends nothing must not take memory from lanes that send.
    if (endpoint.paused || lane.isLeaving) lane.clearQueue();
    if (lane.isFifo) this.moveToFifo(lane);
    refill.request(lane, 'all');
    scheduler.consider(lane);
  }

  /** Gives deliveries that were stored before the endpoint became FIFO their place in the order. */
  moveToFifo(lane: Lane): void {
    const { janitor, refill } = this.#options;
    janitor.moveToFifo(lane, () => refill.request(lane, 'all'));
  }

  /** The clock was set by `stepMs`, because the store's clock was. */
  onClockStepped(stepMs: number): void {
    for (const lane of this.#options.lanes.all()) {
      lane.onClockStepped(stepMs);
      if (lane.endpoint.enabled && !lane.endpoint.deleted) this.reconcileLane(lane);
    }
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
    while (this.#loadProbesAgain && !this.#isStopped) {
      this.#loadProbesAgain = false;
      for (const row of (await this.#loadRequestedProbes()).values()) {
        const lane = lanes.get(row.endpointId);
        if (lane === undefined) continue;
        lane.requestProbe(toItem(row, lane, clock));
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
      (lane) => lane.isBlocked || (lane.isFifo && lane.endpoint.fifoOnDead === 'block'),
    );
    if (blockable.length === 0) return;
    // "Not blocked" is trustworthy only for lanes that were blocked and idle: others may get blocked during the read.
    const unblockable = new Set(blockable.filter((lane) => lane.isBlocked && lane.isIdle));
    const states = await this.#loadStates(blockable.map(({ id }) => id));
    for (const lane of blockable) {
      if (states.get(lane.id)?.blocked ?? false) lane.isBlocked = true;
      else if (unblockable.has(lane)) lane.isBlocked = false;
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
        if (this.#isStopped) return new Map();
        await new Promise<void>((resolve) => clock.after(RETRY_PAUSE_MS, resolve));
      }
    }
  }
}
