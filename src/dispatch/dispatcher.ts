/**
 * Who is sent what, when. Holds a lane for every endpoint of the shards that this worker owns, lets them take turns,
 * and keeps them filled from the database.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';
import { Pace } from '../domain/pace.ts';
import type { EventLookup, NewDelivery } from '../ports/accept-log.ts';
import type { DeliveryQueue, LaneState } from '../ports/delivery-queue.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { TakenShard } from '../ports/ownership-store.ts';
import { type AttemptEvents, Attempts, type Stages } from './attempts.ts';
import { type Census, CensusTaker } from './census.ts';
import { HEALTHY } from './healthy-lane.ts';
import { Janitor } from './janitor.ts';
import { Lane, type LaneItem, type LaneMemory } from './lane.ts';
import type { Ownership } from './ownership.ts';
import { Payloads } from './payloads.ts';
import { RecentIds } from './recent-ids.ts';
import { LOOK_BACK_MS, Refill, type Want } from './refill.ts';
import { Scheduler } from './scheduler.ts';
import { WriteBeforeSend } from './write-before-send.ts';

export interface DispatcherOptions {
  readonly queue: DeliveryQueue;
  readonly eventLookup: EventLookup;
  readonly clock: Clock;
  readonly endpoints: EndpointDirectory;
  readonly ownership: () => Ownership;
  readonly stages: Stages;
  readonly events: Pick<AttemptEvents, 'answered' | 'circuitChanged' | 'gone'>;
  readonly problem: (what: string, error: unknown) => void;
  readonly maxSockets: number;
  readonly retrySocketShare: number;
  readonly laneItems: number;
  readonly budgetItems: number;
  readonly budgetBytes: number;
  readonly unsettledCap: number;
  readonly sweepMs: number;
  readonly retryAfterCapMs: number;
  readonly carefulAfterCrashes: number;
  readonly carefulWindowMs: number;
  /** How long a shard that is given up waits for its requests before it changes hands with them on the wire. */
  readonly handOverMs: number;
  /** Other processes of this node hand over what they accept for our lanes. */
  readonly hasSiblings?: boolean;
}

/** What a sibling hands over so long after its commit was begun is looked for in the database. */
const NEWS_MS = 1_000;
const PAYLOAD_CACHE_BYTES = 8 * 1024 * 1024;
const SWEEPS_PER_BOTTOM = 60;
const LANES_PER_STATE_READ = 500;
/** Deliveries whose time comes within this are read ahead of it. */
const READ_AHEAD_MS = 5_000;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #lanes = new Map<Uuid, Lane>();
  readonly #byShard = new Map<number, Set<Lane>>();
  /** Shards whose workers died often of late, and until when they are worked carefully for that. */
  readonly #carefulUntil = new Map<number, number>();
  readonly #scheduler: Scheduler;
  readonly #refill: Refill;
  readonly #payloads: Payloads;
  readonly #attempts: Attempts;
  readonly #janitor: Janitor;
  readonly #censusTaker: CensusTaker;
  readonly #handingOver = new Set<number>();
  readonly #memory: LaneMemory = { items: 0, bytes: 0 };
  readonly #whenSomethingEnds: (() => void)[] = [];
  /** What was started of late: told of by a sibling afterwards, it is no news. */
  readonly #started: RecentIds | null;
  #unsettled = 0;
  #cancelSweep: (() => void) | null = null;
  #sweeps = 0;
  #stopped = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { queue, clock, problem } = options;
    this.#started = options.hasSiblings ? new RecentIds(clock, 2 * NEWS_MS) : null;
    this.#scheduler = new Scheduler({
      ...options,
      mayStart: () => this.#unsettled < options.unsettledCap && options.ownership().hasValidLease,
      isLeaving: (shard) => this.#handingOver.has(shard),
      start: (lane, item) => {
        this.#started?.add(item.delivery.id);
        this.#attempts.start(lane, item);
      },
      feed: (lane, now) => this.#feed(lane, now),
    });
    this.#refill = new Refill({
      queue,
      clock,
      laneItems: options.laneItems,
      room: () => options.budgetItems - this.#memory.items,
      filled: (lanes) => {
        for (const lane of lanes) this.#scheduler.consider(lane);
      },
      failed: (error) => problem('read waiting deliveries', error),
    });
    this.#payloads = new Payloads({
      events: options.eventLookup,
      cacheBytes: PAYLOAD_CACHE_BYTES,
      failed: (error) => problem('read payloads', error),
    });
    const writeBeforeSend = new WriteBeforeSend({
      queue,
      workerId: () => options.ownership().workerId,
      failed: (error) => problem('write down what is about to be sent', error),
    });
    this.#janitor = new Janitor({ queue, clock, endpoints: options.endpoints, problem });
    this.#censusTaker = new CensusTaker(queue);
    this.#attempts = new Attempts({
      clock,
      stages: {
        ...options.stages,
        settle: (settlement, health, done) => {
          this.#unsettled += 1;
          options.stages.settle(settlement, health, (moved) => {
            this.#unsettled -= 1;
            done(moved);
          });
        },
      },
      mayStart: (shard) => options.ownership().maySend(shard),
      readPayload: (eventId, done) => this.#payloads.read(eventId, done),
      writeBeforeSend: (start, done) => writeBeforeSend.mark(start, done),
      retryAfterCapMs: options.retryAfterCapMs,
      hasRoom: (lane) => lane.queuedRetries < options.laneItems && this.#memory.items < options.budgetItems,
      events: {
        ...options.events,
        circuitChanged: (lane) => {
          if (!lane.breaker.allowsTraffic) lane.clearQueue();
          options.events.circuitChanged(lane);
        },
        freed: (_lane, item) => this.#scheduler.freed(item),
        ended: (lane) => this.#ended(lane),
        doubtful: (lane) => {
          this.#refill.want(lane, 'bottom');
          void this.#refreshBlocked([lane]);
        },
      },
    });
  }

  start(): void {
    if (this.#cancelSweep === null && !this.#stopped) this.#scheduleSweep();
  }

  /** Stops reading and starting. What is in flight is the caller's to wait for. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelSweep?.();
    this.#cancelSweep = null;
    this.#scheduler.stop();
    await Promise.all([this.#refill.stop(), this.#janitor.stop()]);
  }

  get stats() {
    let open = 0;
    for (const lane of this.#lanes.values()) if (!lane.breaker.allowsTraffic) open += 1;
    return {
      lanes: this.#lanes.size,
      inMemory: this.#memory.items,
      inFlight: this.#scheduler.inFlight,
      unsettled: this.#unsettled,
      circuitsOpen: open,
      heldBytes: this.#memory.bytes,
    };
  }

  /** How much waits in all. Reads the database: for now and then, not for every time somebody asks. */
  census(): Promise<Census> {
    return this.#censusTaker.take([...this.#lanes.values()], this.#options.clock.now());
  }

  lane(id: Uuid): Lane | undefined {
    return this.#lanes.get(id);
  }

  // --- shards ---------------------------------------------------------------------------------------------

  shardsTaken(taken: readonly TakenShard[]): void {
    for (const { shard, crashes } of taken) {
      this.#byShard.set(shard, new Set());
      this.#handingOver.delete(shard);
      if (crashes < this.#options.carefulAfterCrashes) this.#carefulUntil.delete(shard);
      else this.#carefulUntil.set(shard, this.#options.clock.monotonic() + this.#options.carefulWindowMs);
    }
    const shards = new Set(taken.map(({ shard }) => shard));
    const endpoints = [...this.#options.endpoints.all()].filter((endpoint) =>
      shards.has(shardOf(endpoint.id)),
    );
    void this.#openLanes(endpoints);
  }

  shardsLost(shards: readonly number[]): void {
    for (const shard of shards) {
      for (const lane of this.#byShard.get(shard) ?? []) this.#closeLane(lane);
      this.#byShard.delete(shard);
      this.#handingOver.delete(shard);
    }
  }

  /**
   * Gives shards away: those with nothing under way at once, the others when their requests have ended or `withinMs` is
   * over. What is on the wire then is written down, and the next owner waits for it.
   */
  async handOver(
    shards: readonly number[],
    release: (shards: readonly number[]) => Promise<void>,
    withinMs = this.#options.handOverMs,
  ): Promise<void> {
    for (const shard of shards) this.#handingOver.add(shard);
    const until = this.#options.clock.monotonic() + withinMs;
    let busy = [...shards];
    for (;;) {
      const idle = busy.filter((shard) => !this.#isBusy(shard));
      if (idle.length > 0) {
        busy = busy.filter((shard) => !idle.includes(shard));
        this.shardsLost(idle);
        await release(idle);
        // Look again before waiting: the last request may have ended meanwhile.
        continue;
      }
      const leftMs = until - this.#options.clock.monotonic();
      if (busy.length === 0 || leftMs <= 0) break;
      await this.#somethingEnded(leftMs);
    }
    if (busy.length === 0) return;
    await this.#writeDownWhatIsOnTheWire(busy);
    this.shardsLost(busy);
    await release(busy);
  }

  #somethingEnded(withinMs: number): Promise<void> {
    return new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(withinMs, resolve);
      this.#whenSomethingEnds.push(resolve, cancel);
    });
  }

  async #writeDownWhatIsOnTheWire(shards: readonly number[]): Promise<void> {
    const now = this.#options.clock.now();
    const lanes = shards.flatMap((shard) => [...(this.#byShard.get(shard) ?? [])]);
    // Also what is answered and not yet written down: the next owner would send it again otherwise.
    const onTheWire = lanes.flatMap((lane) =>
      lane.underWay.map((item) => ({
        id: item.delivery.id,
        startedAt: this.#scheduler.startedAt(item) ?? now,
      })),
    );
    try {
      if (onTheWire.length > 0) await this.#options.queue.recordOnWire(onTheWire);
    } catch (error) {
      this.#options.problem('hand over requests on the wire', error);
    }
  }

  #isBusy(shard: number): boolean {
    for (const lane of this.#byShard.get(shard) ?? []) if (lane.inFlight + lane.unsettled > 0) return true;
    return false;
  }

  async #openLanes(endpoints: readonly Endpoint[]): Promise<void> {
    for (let i = 0; i < endpoints.length; i += LANES_PER_STATE_READ) {
      const chunk = endpoints.slice(i, i + LANES_PER_STATE_READ);
      const epochs = chunk.map((endpoint) => this.#options.ownership().epochOf(shardOf(endpoint.id)));
      const states = await this.#loadStates(chunk.map(({ id }) => id));
      for (const [index, { id }] of chunk.entries()) {
        const shard = shardOf(id);
        const lanes = this.#byShard.get(shard);
        // The shard may have gone, or gone and come back, while the states were being read.
        if (
          lanes === undefined ||
          this.#options.ownership().epochOf(shard) !== epochs[index] ||
          this.#lanes.has(id)
        )
          continue;
        const endpoint = this.#options.endpoints.get(id);
        if (endpoint === undefined) continue;
        const state = states.get(id) ?? HEALTHY;
        const lane = new Lane(endpoint, state, this.#newPace(endpoint, state.isNew), this.#memory);
        lane.careful = this.#carefulUntil.has(shard);
        this.#lanes.set(id, lane);
        lanes.add(lane);
        this.#takeStock(lane);
      }
    }
  }

  async #loadStates(ids: readonly Uuid[]): Promise<Map<Uuid, LaneState>> {
    for (;;) {
      try {
        return await this.#options.queue.loadStates(ids);
      } catch (error) {
        this.#options.problem('read the state of endpoints', error);
        if (this.#stopped) return new Map();
        await new Promise<void>((resolve) => this.#options.clock.after(500, resolve));
      }
    }
  }

  /** Empty: whoever had the endpoint before may just have spent the burst. Full only where nobody had it. */
  #newPace({ rateLimit }: Endpoint, full: boolean): Pace | null {
    if (rateLimit === null) return null;
    return new Pace(rateLimit, this.#options.clock.monotonic(), full ? Math.max(1, rateLimit.burst) : 0);
  }

  /** A lane that is new, or whose endpoint changed: read what waits for it, or end what may not wait any more. */
  #takeStock(lane: Lane): void {
    const { endpoint } = lane;
    if (endpoint.enabled && !endpoint.deleted) {
      // One that does not send must not take the memory that others send from.
      if (endpoint.paused) lane.clearQueue();
      if (lane.fifo) this.#putInOrder(lane);
      this.#refill.want(lane, 'bottom');
      this.#scheduler.consider(lane);
      return;
    }
    lane.clearQueue();
    this.#janitor.skip(lane, () => this.#closeLane(lane));
  }

  #closeLane(lane: Lane): void {
    lane.close();
    this.#lanes.delete(lane.id);
    this.#byShard.get(lane.shard)?.delete(lane);
    this.#scheduler.forget(lane);
  }

  // --- coming in ------------------------------------------------------------------------------------------

  /** Just committed by this process. Returns false if the endpoint's shard is not ours: its owner must be woken. */
  offer(delivery: NewDelivery, event: EventContent): boolean {
    const lane = this.#lanes.get(delivery.endpointId);
    if (lane === undefined) return this.#options.ownership().owns(shardOf(delivery.endpointId));
    if (lane.fifo) {
      // Another process may have accepted something before it: only the database knows the order.
      this.#refill.want(lane, 'recent');
      return true;
    }
    const room = lane.flows && this.#memory.items < this.#options.budgetItems;
    if (delivery.dueAt !== null) {
      if (delivery.dueAt < lane.read.retryHorizon && room && lane.queuedRetries < this.#options.laneItems) {
        lane.addRetry(this.#newItem(delivery, null));
      } else {
        lane.read.missedRetry(delivery.dueAt);
      }
    } else if (lane.read.moreFresh || lane.queuedFresh >= this.#options.laneItems || !room) {
      lane.read.missedFresh(this.#refill.seqBefore(LOOK_BACK_MS));
    } else {
      const keep = this.#memory.bytes + event.data.length <= this.#options.budgetBytes;
      lane.addFresh(this.#newItem(delivery, keep ? event : null));
    }
    this.#scheduler.consider(lane);
    return true;
  }

  /**
   * Committed by another process of this node. Unlike our own commits it may come late: found by a sweep before, sent
   * and settled. But not before its commit was on its way: what has been started since then is remembered, and if that
   * is longer ago, the lane looks for itself.
   */
  offerOfSibling(delivery: NewDelivery, event: EventContent, commitSentAt: number): boolean {
    if (this.#started?.has(delivery.id)) return true;
    // Ahead of our clock is as odd as behind it.
    const age = Math.abs(this.#options.clock.now() - commitSentAt);
    if (age < NEWS_MS) return this.offer(delivery, event);
    const lane = this.#lanes.get(delivery.endpointId);
    if (lane !== undefined) this.#refill.want(lane, 'sweep');
    return this.#options.ownership().owns(shardOf(delivery.endpointId));
  }

  #newItem(delivery: NewDelivery, event: EventContent | null): LaneItem {
    return {
      delivery: {
        id: delivery.id,
        endpointId: delivery.endpointId,
        seq: 0,
        attempts: 0,
        attemptsBeforeReplay: 0,
        dueAt: delivery.dueAt,
        agesFrom: delivery.dueAt ?? timeOfId(delivery.id),
        trigger: 'auto',
        lastErrorClass: null,
      },
      event,
      state: 'queued',
      probe: false,
      notBefore: 0,
      carefulStarts: 0,
    };
  }

  /** Something was accepted, replayed or changed for this endpoint, by whomever. */
  wake(endpointId: Uuid, want: Want = 'recent'): void {
    const lane = this.#lanes.get(endpointId);
    if (lane === undefined) return;
    this.#refill.want(lane, want);
    void this.#refreshBlocked([lane]);
  }

  endpointsChanged(changed: readonly Endpoint[]): void {
    const unknown: Endpoint[] = [];
    for (const endpoint of changed) {
      const lane = this.#lanes.get(endpoint.id);
      if (lane === undefined) {
        if (this.#byShard.has(shardOf(endpoint.id))) unknown.push(endpoint);
        continue;
      }
      const wasOff = !lane.endpoint.enabled;
      const orderingChanged = lane.endpoint.ordering !== endpoint.ordering;
      lane.reconfigure(endpoint, this.#newPace(endpoint, false));
      if (orderingChanged) lane.clearQueue();
      // The lane stays: what is on the wire is remembered in it, and would be sent a second time by a new one.
      if (wasOff && endpoint.enabled) void this.#revive(lane);
      void this.#refreshBlocked([lane]);
      this.#takeStock(lane);
    }
    if (unknown.length > 0) void this.#openLanes(unknown);
  }

  /** Switching an endpoint on has cleared what was remembered against it. */
  async #revive(lane: Lane): Promise<void> {
    const states = await this.#loadStates([lane.id]);
    lane.restore(states.get(lane.id) ?? HEALTHY);
    this.#scheduler.consider(lane);
  }

  /** A dead letter that blocks a lane may have been replayed, discarded or brought back. */
  async #refreshBlocked(lanes: readonly Lane[]): Promise<void> {
    const blockable = lanes.filter(
      (lane) => lane.blocked || (lane.fifo && lane.endpoint.fifoOnDead === 'block'),
    );
    if (blockable.length === 0) return;
    // While it is blocked and nothing is under way no other can die: only then "not blocked" is not out of date.
    const waiting = new Set(blockable.filter((lane) => lane.blocked && lane.inFlight + lane.unsettled === 0));
    const states = await this.#loadStates(blockable.map(({ id }) => id));
    for (const lane of blockable) {
      if (states.get(lane.id)?.blocked ?? false) lane.blocked = true;
      else if (waiting.has(lane)) lane.blocked = false;
      this.#scheduler.consider(lane);
    }
  }

  /** The proof of ownership is fresh, and the order stood there. */
  renewed(lastSeq: number): void {
    this.#refill.mark(lastSeq);
    this.#scheduler.pumpSoon();
  }

  /**
   * Asks for more before the lane runs dry. One that may not send gets just enough for a probe. Returns when to look
   * again, if time alone will make it need more.
   */
  #feed(lane: Lane, now: number): number {
    if (lane.read.loading || !lane.endpoint.enabled || lane.endpoint.deleted) return Number.POSITIVE_INFINITY;
    const flows = lane.flows && this.#memory.items < this.#options.budgetItems;
    const low = flows ? this.#options.laneItems / 2 : 1;
    const needsFresh = lane.read.moreFresh && lane.queuedFresh < low;
    // A strictly ordered lane has no retries of its own: they wait at its head.
    const retryHorizon = lane.fifo ? Number.POSITIVE_INFINITY : lane.read.retryHorizon;
    const readsAheadAt = retryHorizon - READ_AHEAD_MS;
    if (readsAheadAt <= now && lane.queuedRetries >= low) lane.letGoOfLaterRetries();
    const needsRetries = readsAheadAt <= now && lane.queuedRetries < low;
    if (!needsFresh && !needsRetries) return readsAheadAt <= now ? Number.POSITIVE_INFINITY : readsAheadAt;
    this.#refill.want(lane, 'more');
    return Number.POSITIVE_INFINITY;
  }

  #ended(lane: Lane): void {
    for (const resolve of this.#whenSomethingEnds.splice(0)) resolve();
    const { endpoint } = lane;
    if ((!endpoint.enabled || endpoint.deleted) && !lane.closed && lane.inFlight + lane.unsettled === 0)
      this.#takeStock(lane);
    else this.#scheduler.consider(lane);
    this.#scheduler.pumpSoon();
  }

  #putInOrder(lane: Lane): void {
    this.#janitor.putInOrder(lane, () => this.#refill.want(lane, 'bottom'));
  }

  // --- sweeps ---------------------------------------------------------------------------------------------

  #scheduleSweep(): void {
    this.#cancelSweep = this.#options.clock.after(this.#options.sweepMs, () => {
      this.#sweep();
      if (!this.#stopped) this.#scheduleSweep();
    });
  }

  /** Wake-ups may have been missed: do not wait for the next round. */
  sweepSoon(): void {
    if (this.#cancelSweep !== null && !this.#stopped) this.#sweep();
  }

  /** Behind every wake-up that may be lost: looks at all lanes, and now and then at all that waits. */
  #sweep(): void {
    this.#sweeps += 1;
    this.#endCarefulness();
    for (const lane of this.#lanes.values()) {
      // Not all at once: beside a transaction that is kept open, a look at the bottom walks through all that was settled.
      const want: Want = (this.#sweeps + lane.shard) % SWEEPS_PER_BOTTOM === 0 ? 'bottom' : 'sweep';
      if (!lane.endpoint.enabled || lane.endpoint.deleted) {
        // What was accepted just before it was switched off may have been committed after it was cleared.
        if (want === 'bottom') this.#takeStock(lane);
        continue;
      }
      this.#refill.want(lane, want);
      if (want === 'bottom' && lane.fifo) this.#putInOrder(lane);
      this.#janitor.expire(lane);
      this.#scheduler.consider(lane);
    }
    void this.#refreshBlocked([...this.#lanes.values()].filter((lane) => lane.blocked));
  }

  /** Nobody has died of these for as long as deaths are counted. */
  #endCarefulness(): void {
    const now = this.#options.clock.monotonic();
    for (const [shard, until] of this.#carefulUntil) {
      if (now < until) continue;
      this.#carefulUntil.delete(shard);
      for (const lane of this.#byShard.get(shard) ?? []) lane.careful = false;
    }
  }
}
