/**
 * Composes the engine: everything from the commit of an event to the recorded result. The server and the simulation both
 * use this function.
 *
 *   commit ─▶ CommitRouter ─▶ LaneIntake ─▶ Lane ─▶ Scheduler ─▶ Attempts ─▶ convert ─▶ send ─▶ Attempts ─▶ Settler
 *                 │ owned elsewhere            ▲ Refill: what does not fit in memory, retries, lost notifications
 *                 └▶ HandOver, Notifier        └ Ownership, LaneKeeper, Sweeper: which lanes this process has
 */
import type { Config } from './config/index.ts';
import { createSettler, waitUntilIdleWithin } from './create-settler.ts';
import {
  type AttemptObserver,
  Attempts,
  BatchComposer,
  BatchRecorder,
  CarefulShards,
  CommitRouter,
  DebounceDecisions,
  FactsListener,
  FactsPoller,
  type HistoryChange,
  Janitor,
  LaneBudget,
  LaneIntake,
  LaneKeeper,
  LaneMover,
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
  WorkProgress,
} from './dispatch/index.ts';
import type { BatcherOptions } from './domain/batcher.ts';
import type { DatabaseClock } from './domain/clock.ts';
import { LEADER_SHARD } from './domain/endpoint.ts';
import type { Uuid } from './domain/ids.ts';
import type { Service } from './domain/lifecycle.ts';
import { LoadMeter, NO_LOAD, type ProcessLoad, worseLoad } from './domain/load-meter.ts';
import type { DeliveryQueue, Settlement } from './ports/delivery-queue.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { EventLookup } from './ports/event-store.ts';
import type { HandOver } from './ports/hand-over.ts';
import type { Notifier } from './ports/notifier.ts';
import type { OwnershipStore, StoreFacts } from './ports/ownership-store.ts';
import type { PayloadConverter, RequestSender } from './ports/stages.ts';

export interface EnginePorts {
  readonly queue: DeliveryQueue;
  readonly eventLookup: EventLookup;
  readonly ownershipStore: OwnershipStore;
  readonly endpoints: EndpointDirectory;
  /** Started before the engine and stopped after it. */
  readonly notifier: Notifier;
  /** Null: this node has one process, and connections between nodes are switched off. */
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
  readonly sender: RequestSender;
  readonly observer: EngineObserver;
  readonly tail?:
    | { readonly isWatched: boolean; onSettled(settlements: readonly Settlement[]): void }
    | undefined;
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
  | 'region'
  | 'regionFallbackAfterMs'
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
  | 'shedLoopDelayMs'
  | 'shedCommitMs'
>;

export interface Engine extends Service {
  /** Gets the deliveries of every commit. */
  readonly router: CommitRouter;
  readonly ownership: Ownership;
  readonly lanes: LaneRegistry;
  readonly stats: EngineStats;
  /** How long this worker could not read deliveries, or could not record results. */
  readonly stalledForMs: number;
  /** The worst load among the processes of this node that deliver, this one included. */
  readonly deliveryLoad: ProcessLoad;
  /** True in one process of the deployment, the owner of shard 0. The leader does the work that only one process may do. */
  readonly isLeader: boolean;
  /** True if no event was accepted for half a minute, so that every committed delivery is visible. */
  isStoreQuiet(): boolean;
  /** Calls `listener` several times a second with the facts of the store. */
  onFacts(listener: (facts: StoreFacts) => void): void;
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
  const { queue, notifier, handOver, clock } = ports;
  const sending = createSendingParts(ports, stages, config);
  const owning = createOwningParts(ports, stages, config, sending);
  connectParts(ports, stages, { ...sending, ...owning });
  const { ownership, lanes, budget, scheduler, refill, janitor, laneKeeper, attempts, settler } = sending;
  const { router, shardHandOver, laneMover, sweeper, facts, lease, history, ownsShards } = owning;
  const depthCounter = new QueueDepthCounter(queue);

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
    get stalledForMs() {
      return ownership.shardCount === 0 ? 0 : sending.progress.stalledForMs;
    },
    get deliveryLoad() {
      return worseLoad(sending.load.load, handOver?.siblingLoad ?? NO_LOAD);
    },
    get isLeader() {
      return ownership.owns(LEADER_SHARD);
    },
    isStoreQuiet: () => refill.isStoreQuiet,
    onFacts: (listener) => facts.addListener(listener),
    countQueue: () => depthCounter.count([...lanes.all()], clock.now()),
    async start() {
      await history.checkTimeline();
      if (config.shedLoopDelayMs + config.shedCommitMs > 0) sending.load.start();
      await lease.start();
      await handOver?.start(() => ownership.keptShards, sending.load);
      if (ownsShards) sweeper.start();
    },
    async stop() {
      history.stop();
      laneMover.stop();
      const owned = await ownership.beginStop();
      handOver?.announceShards();
      await shardHandOver.handOver(owned, config.drainMs / 2);
      sweeper.stop();
      laneKeeper.stop();
      scheduler.stop();
      await Promise.all([refill.stop(), janitor.stop()]);
      await waitUntilIdleWithin(settler, clock, config.drainMs / 4);
      await handOver?.stop();
      await notifier.flush();
      sending.load.stop();
      await lease.stop();
    },
  };
}

type SendingParts = ReturnType<typeof createSendingParts>;
type OwningParts = ReturnType<typeof createOwningParts>;

/** Creates the parts that decide which lanes this process has, and what comes into them. */
function createOwningParts(
  ports: EnginePorts,
  stages: EngineStages,
  config: EngineConfig,
  sending: SendingParts,
) {
  const { queue, ownershipStore: store, endpoints, notifier, handOver, clock } = ports;
  const { observer, onProblem } = stages;
  const { ownership, laneKeeper, refill } = sending;
  const intake = new LaneIntake({ clock, endpoints, ...sending });
  const facts = new FactsListener({ clock, endpoints, ...sending, observer, onProblem });
  // An API process owns no shards. It needs only the clock and the version of the endpoints.
  const ownsShards = config.role !== 'api';
  const lease: Service = ownsShards
    ? ownership
    : new FactsPoller({ store, clock, everyMs: config.heartbeatMs, listener: facts, onProblem });
  const history = new StoreHistory({
    store,
    endpoints,
    clock,
    onChanged(change) {
      observer.onStoreReplaced(change);
      refill.forgetMarks();
      if (ownsShards) ownership.onStoreReplaced();
    },
    onProblem,
  });
  return {
    router: new CommitRouter({ intake, laneKeeper, endpoints, notifier, handOver, clock, onProblem }),
    shardHandOver: new ShardHandOver({ queue, clock, ...sending, onProblem }),
    laneMover: new LaneMover({ queue, clock, endpoints, store, ...sending, onProblem }),
    sweeper: new Sweeper({ queue, clock, everyMs: config.sweepMs, ...sending, onProblem }),
    facts,
    lease,
    history,
    ownsShards,
  };
}

/** Connects the parts: passes on changes of ownership and of endpoints, messages, and steps of the clock. */
function connectParts(ports: EnginePorts, stages: EngineStages, parts: SendingParts & OwningParts): void {
  const { endpoints, notifier, handOver, clock } = ports;
  const { ownership, laneKeeper, laneMover, shardHandOver, sweeper, router, facts, history } = parts;
  const announceShards = (): void => handOver?.announceShards();
  ownership.addListener({ onRewound: () => history.reportRewound() });
  ownership.addListener(stages.observer);
  ownership.addListener(facts);
  ownership.addListener(laneKeeper);
  ownership.addListener(laneMover);
  ownership.addListener({
    onShardsTaken: announceShards,
    onShardsLost: announceShards,
    onShardsSurplus: announceShards,
  });
  ownership.addListener(shardHandOver);
  endpoints.onChange((changed) => {
    laneKeeper.onEndpointsChanged(changed);
    laneMover.onEndpointsChanged(changed);
  });
  clock.onStepped((stepMs) => {
    parts.scheduler.onClockStepped(stepMs);
    laneKeeper.onClockStepped(stepMs);
  });
  handOver?.onReceived((deliveries, commit) => router.routeFromSibling(deliveries, commit));
  handOver?.onUndelivered((deliveries, commit) => router.notifyUndelivered(deliveries, commit));
  notifier.subscribe('endpoints', () => facts.refreshEndpoints());
  notifier.onReconnected(() => void history.checkTimeline());
  if (!parts.ownsShards) return;
  notifier.subscribe('shards', () => ownership.renewNow());
  notifier.subscribe('probes', () => laneKeeper.loadProbes());
  notifier.subscribe('wake', (message) => laneKeeper.onWake(message));
  notifier.onReconnected(() => sweeper.sweepNow());
}

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
  const ownership = createOwnership(ports, stages, config);
  const scheduler = new Scheduler({ clock, ownership, ...config });
  const progress = new WorkProgress(clock);
  const refill = new Refill({ queue: progress.watchReads(queue), clock, budget, scheduler, onProblem });
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
    retryAfterCapMs: config.retryAfterCapMs,
    onProblem,
  });
  const load = new LoadMeter({ clock });
  const settler = createSettler(ports, stages, config, { progress, ownership, load });
  const payloads = new Payloads({ events: ports.eventLookup, clock, onProblem });
  const batchRecorder = new BatchRecorder({ queue, clock, ownership, onProblem });
  followExpunges(ports, stages, { ownership, payloads });
  const attempts = new Attempts({
    clock,
    random,
    ownership,
    payloads,
    converter: stages.converter,
    startLog: new StartLog({ queue, clock, ownership, onProblem }),
    sender: stages.sender,
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
  scheduler.connect({ attempts, refill, results: settler });
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
    progress,
    load,
  };
}

/** Forgets the payloads of expunged events. The message is quick but may be lost. A renewal of the lease returns the same ids. */
function followExpunges(
  { notifier }: EnginePorts,
  { converter }: EngineStages,
  { ownership, payloads }: { readonly ownership: Ownership; readonly payloads: Payloads },
): void {
  const expunge = (eventId: Uuid): void => {
    if (payloads.isExpunged(eventId)) return;
    payloads.expunge(eventId);
    converter?.expunge(eventId);
  };
  notifier.subscribe('expunged', expunge);
  ownership.addListener({ onExpunged: (eventIds) => eventIds.forEach(expunge) });
}

function createOwnership(
  { ownershipStore: store, clock }: EnginePorts,
  { onProblem }: EngineStages,
  config: EngineConfig,
): Ownership {
  return new Ownership({
    store,
    workerName: config.workerName,
    clock,
    heartbeatMs: config.heartbeatMs,
    leaseMs: config.proofMs,
    deadAfterMs: config.deadAfterMs,
    crashWindowMs: config.carefulWindowMs,
    region: config.region,
    fallbackAfterMs: config.regionFallbackAfterMs,
    onProblem,
  });
}
