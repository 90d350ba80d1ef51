/**
 * Composes the engine: everything from the commit of an event to the recorded result. The server and the simulation both
 * use this function.
 *
 *   commit ─▶ CommitRouter ─▶ LaneIntake ─▶ Lane ─▶ Scheduler ─▶ Attempts ─▶ convert ─▶ send ─▶ Attempts ─▶ Settler
 *                 │ owned elsewhere            ▲ Refill: what does not fit in memory, retries, lost notifications
 *                 └▶ HandOver, Notifier        └ Ownership, LaneKeeper, Sweeper: which lanes this process has
 */
import type { Config } from './config/index.ts';
import {
  type AttemptObserver,
  Attempts,
  BatchComposer,
  BatchRecorder,
  CarefulShards,
  CommitRouter,
  DebounceDecisions,
  FactsPoller,
  type HistoryChange,
  Janitor,
  LaneBudget,
  LaneIntake,
  LaneKeeper,
  LaneRegistry,
  MAX_COMMIT_AGE_MS,
  Ownership,
  type OwnershipListener,
  Payloads,
  type QueueDepth,
  QueueDepthCounter,
  RecentIds,
  Refill,
  Scheduler,
  ShardHandOver,
  StartLog,
  StoreHistory,
  Sweeper,
} from './dispatch/index.ts';
import type { BatcherOptions } from './domain/batcher.ts';
import type { DatabaseClock } from './domain/clock.ts';
import { LEADER_SHARD } from './domain/endpoint.ts';
import type { Service } from './domain/lifecycle.ts';
import type { EventLookup } from './ports/accept-log.ts';
import type { DeliveryQueue, Settlement } from './ports/delivery-queue.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { HandOver } from './ports/hand-over.ts';
import type { Notifier } from './ports/notifier.ts';
import type { OwnershipStore, StoreFacts } from './ports/ownership-store.ts';
import type { PayloadConverter, SendRequest } from './ports/stages.ts';
import { Settler } from './settle/index.ts';

export interface EnginePorts {
  readonly queue: DeliveryQueue;
  readonly eventLookup: EventLookup;
  readonly ownershipStore: OwnershipStore;
  readonly endpoints: EndpointDirectory;
  /** Started before the engine and stopped after it. */
  readonly notifier: Notifier;
  /** Null: this node has one process. */
  readonly handOver: HandOver | null;
  readonly clock: DatabaseClock;
  readonly random: () => number;
}

/** Metrics, log and live tail of the engine. */
export interface EngineObserver extends AttemptObserver, OwnershipListener {
  /** Called when the endpoints in memory have the same version as those in the store. */
  onEndpointsConfirmed(): void;
  /** The store was restored or replaced by a standby. */
  onStoreReplaced(change: HistoryChange): void;
}

export interface EngineStages {
  /** Null: there is no catalogue, and every event is sent as it was published. */
  readonly converter: PayloadConverter | null;
  readonly send: SendRequest;
  readonly observer: EngineObserver;
  readonly tail?: { readonly open: boolean; settled(settlements: readonly Settlement[]): void } | undefined;
  /** Called after each batch of results, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
  readonly onProblem: (what: string, error: unknown) => void;
}

export type EngineConfig = { readonly workerName: string } & Pick<
  Config,
  | 'role'
  | 'heartbeatMs'
  | 'proofMs'
  | 'deadAfterMs'
  | 'carefulAfterCrashes'
  | 'carefulWindowMs'
  | 'maxSockets'
  | 'retrySocketShare'
  | 'laneItems'
  | 'laneBudgetItems'
  | 'laneBudgetBytes'
  | 'unsettledCap'
  | 'settleBatchRows'
  | 'settleLingerMs'
  | 'sweepMs'
  | 'retryAfterCapMs'
  | 'drainMs'
>;

export interface Engine extends Service {
  /** Gets the deliveries of every commit. */
  readonly router: CommitRouter;
  readonly ownership: Ownership;
  readonly lanes: LaneRegistry;
  readonly stats: EngineStats;
  /** True in one process of the deployment, the owner of shard 0. It does work that must not be done by all. */
  readonly isLeader: boolean;
  /** Counts all waiting deliveries of this worker. Reads the store, so do not call it for every scrape. */
  countQueue(): Promise<QueueDepth>;
}

export interface EngineStats {
  readonly lanes: number;
  readonly inMemory: number;
  readonly inFlight: number;
  readonly unsettled: number;
  readonly openCircuits: number;
  readonly heldBytes: number;
}

export function createEngine(ports: EnginePorts, stages: EngineStages, config: EngineConfig): Engine {
  const { queue, endpoints, notifier, handOver, clock } = ports;
  const { onProblem } = stages;
  const parts = createSendingParts(ports, stages, config);
  const { ownership, lanes, budget, scheduler, refill, janitor, laneKeeper, attempts } = parts;
  const intake = new LaneIntake({ clock, ...parts });
  const router = new CommitRouter({ intake, laneKeeper, endpoints, notifier, handOver, onProblem });
  const shardHandOver = new ShardHandOver({ queue, clock, ...parts, onProblem });
  const sweeper = new Sweeper({ queue, clock, everyMs: config.sweepMs, ...parts, onProblem });
  const depthCounter = new QueueDepthCounter(queue);
  // An API process owns no shards. It needs only the clock and the version of the endpoints.
  const ownsShards = config.role !== 'api';
  const facts = new FactsListener(ports, stages, parts);
  const lease: Service = ownsShards
    ? ownership
    : new FactsPoller({
        store: ports.ownershipStore,
        clock,
        everyMs: config.heartbeatMs,
        listener: facts,
        onProblem,
      });

  const history = new StoreHistory({
    store: ports.ownershipStore,
    endpoints,
    clock,
    onChanged(change) {
      stages.observer.onStoreReplaced(change);
      refill.forgetMarks();
      if (ownsShards) ownership.onStoreReplaced();
    },
    onProblem,
  });

  ownership.addListener({ onRewound: () => history.reportRewound() });
  const announceShards = (): void => handOver?.announceShards();
  ownership.addListener(stages.observer);
  ownership.addListener(facts);
  ownership.addListener(laneKeeper);
  ownership.addListener({
    onShardsTaken: announceShards,
    onShardsLost: announceShards,
    onShardsSurplus: announceShards,
  });
  ownership.addListener(shardHandOver);
  endpoints.onChange((changed) => laneKeeper.onEndpointsChanged(changed));
  handOver?.onReceived((deliveries, commit) => router.routeFromSibling(deliveries, commit));
  notifier.subscribe('endpoints', () => facts.refreshEndpoints());
  notifier.onReconnected(() => void history.checkTimeline());
  if (ownsShards) {
    notifier.subscribe('shards', () => ownership.renewNow());
    notifier.subscribe('probes', () => laneKeeper.loadProbes());
    notifier.subscribe('wake', (message) => laneKeeper.onWake(message));
    notifier.onReconnected(() => sweeper.sweepNow());
  }

  return {
    router,
    ownership,
    lanes,
    get stats() {
      return {
        lanes: lanes.size,
        inMemory: budget.items,
        inFlight: scheduler.inFlight,
        unsettled: attempts.unsettled,
        openCircuits: lanes.openCircuits,
        heldBytes: budget.bytes,
      };
    },
    get isLeader() {
      return ownership.owns(LEADER_SHARD);
    },
    countQueue: () => depthCounter.count([...lanes.all()], clock.now()),
    async start() {
      await history.checkTimeline();
      await lease.start();
      await handOver?.start(() => ownership.keptShards);
      if (ownsShards) sweeper.start();
    },
    async stop() {
      history.stop();
      const owned = await ownership.beginStop();
      announceShards();
      await shardHandOver.handOver(owned, config.drainMs / 2);
      sweeper.stop();
      laneKeeper.stop();
      scheduler.stop();
      await Promise.all([refill.stop(), janitor.stop()]);
      await waitUntilIdleWithin(parts.settler, clock, config.drainMs / 4);
      await handOver?.stop();
      await notifier.flush();
      await lease.stop();
    },
  };
}

type SendingParts = ReturnType<typeof createSendingParts>;

/** Creates the parts from the lanes to the recorded result. */
function createSendingParts(ports: EnginePorts, stages: EngineStages, config: EngineConfig) {
  const { queue, endpoints, clock, random } = ports;
  const { observer, onProblem } = stages;
  const lanes = new LaneRegistry();
  const budget = new LaneBudget({
    laneItems: config.laneItems,
    totalItems: config.laneBudgetItems,
    totalBytes: config.laneBudgetBytes,
  });
  const recentStarts = new RecentIds(clock, 2 * MAX_COMMIT_AGE_MS);
  const ownership = new Ownership({
    store: ports.ownershipStore,
    workerName: config.workerName,
    clock,
    heartbeatMs: config.heartbeatMs,
    leaseMs: config.proofMs,
    deadAfterMs: config.deadAfterMs,
    crashWindowMs: config.carefulWindowMs,
    onProblem,
  });
  const scheduler = new Scheduler({ clock, ownership, ...config });
  const refill = new Refill({ queue, clock, budget, scheduler, onProblem });
  const janitor = new Janitor({ queue, clock, endpoints, onProblem });
  const carefulShards = new CarefulShards({
    clock,
    afterCrashes: config.carefulAfterCrashes,
    windowMs: config.carefulWindowMs,
  });
  const laneKeeper = new LaneKeeper({
    queue,
    clock,
    endpoints,
    ownership,
    lanes,
    budget,
    scheduler,
    refill,
    janitor,
    carefulShards,
    onProblem,
  });
  const settler = new Settler({
    sink: queue,
    clock,
    batchRows: config.settleBatchRows,
    lingerMs: config.settleLingerMs,
    worker: ownership,
    tail: stages.tail,
    onBatchWritten: stages.onBatchWritten,
    onProblem,
  });
  const payloads = new Payloads({ events: ports.eventLookup, onProblem });
  const batchRecorder = new BatchRecorder({ queue, clock, ownership, onProblem });
  const { converter } = stages;
  ports.notifier.subscribe('expunged', (eventId) => {
    payloads.expunge(eventId);
    converter?.expunge(eventId);
  });
  const attempts = new Attempts({
    clock,
    random,
    ownership,
    payloads,
    converter,
    startLog: new StartLog({ queue, ownership, onProblem }),
    send: stages.send,
    settler,
    scheduler,
    laneKeeper,
    budget,
    observer,
    recentStarts,
    retryAfterCapMs: config.retryAfterCapMs,
    composer: new BatchComposer({ clock, queue, payloads, onProblem }),
    recorder: batchRecorder,
    debounce: new DebounceDecisions(queue, clock),
    onProblem,
  });
  scheduler.connect({ attempts, refill });
  return {
    lanes,
    budget,
    recentStarts,
    ownership,
    scheduler,
    refill,
    janitor,
    laneKeeper,
    settler,
    attempts,
    batchRecorder,
  };
}

/** Passes the `StoreFacts` to the parts that need them: clock, acceptance number, version of the endpoints. */
class FactsListener {
  readonly #clock: DatabaseClock;
  readonly #parts: Pick<SendingParts, 'refill' | 'scheduler'>;
  readonly #endpoints: EndpointDirectory;
  readonly #stages: Pick<EngineStages, 'observer' | 'onProblem'>;

  constructor({ clock, endpoints }: EnginePorts, stages: EngineStages, parts: SendingParts) {
    this.#clock = clock;
    this.#endpoints = endpoints;
    this.#stages = stages;
    this.#parts = parts;
  }

  onFacts({ now, lastSeq, endpointVersion }: StoreFacts, roundTripMs: number): void {
    this.#clock.correct(now, roundTripMs);
    this.#parts.refill.markSeq(lastSeq);
    // The lease may have been invalid before: let lanes that are ready start again.
    this.#parts.scheduler.pumpSoon();
    if (endpointVersion === this.#endpoints.version) this.#stages.observer.onEndpointsConfirmed();
    else this.refreshEndpoints();
  }

  refreshEndpoints(): void {
    void this.#endpoints.refresh().catch((error) => this.#stages.onProblem('read endpoints', error));
  }
}

function waitUntilIdleWithin(settler: Settler, clock: DatabaseClock, ms: number): Promise<void> {
  return Promise.race([settler.waitUntilIdle(), new Promise<void>((resolve) => clock.after(ms, resolve))]);
}
