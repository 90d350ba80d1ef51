/** One process: the real accept stage and the real engine, connected to the memory ports through a faulty link. */
import { EventCatalogue } from '../../src/catalogue/event-catalogue.ts';
import { loadConfig } from '../../src/config/index.ts';
import { createEngine, type Engine, type EngineConfig, type EngineStages } from '../../src/create-engine.ts';
import { createIngest, type Ingest, type IngestConfig } from '../../src/create-ingest.ts';
import { createKafkaSource } from '../../src/create-kafka-source.ts';
import { type Clock, DatabaseClock } from '../../src/domain/clock.ts';
import type { NewEvent } from '../../src/domain/event.ts';
import { KafkaEventLog, type KafkaSource } from '../../src/kafka/index.ts';
import { Link, withFaults, withOwnershipFaults } from '../../src/memory/faults.ts';
import { createMemoryCatalogueStore } from '../../src/memory/memory-catalogue-store.ts';
import { createMemoryConversionStore } from '../../src/memory/memory-conversion-store.ts';
import {
  createMemoryEndpointSource,
  MemoryEndpointDirectory,
} from '../../src/memory/memory-endpoint-directory.ts';
import { createMemoryEventLookup } from '../../src/memory/memory-event-store.ts';
import { MemoryHandOver, type MemoryHandOverHub } from '../../src/memory/memory-hand-over.ts';
import { createMemoryKafkaStore } from '../../src/memory/memory-kafka-store.ts';
import { createMemoryClosedTenants, createMemoryKeyClaims } from '../../src/memory/memory-key-claims.ts';
import { type MemoryBus, MemoryNotifier } from '../../src/memory/memory-notifier.ts';
import { createMemoryOutboxStore } from '../../src/memory/memory-outbox-store.ts';
import { announceThrough, createMemoryOwnershipStore } from '../../src/memory/memory-ownership-store.ts';
import type { MemoryStore } from '../../src/memory/memory-store.ts';
import { createMemoryTenantLimits } from '../../src/memory/memory-tenant-limits.ts';
import { Drainer } from '../../src/outbox/index.ts';
import type { DeliveryQueue } from '../../src/ports/delivery-queue.ts';
import type { EventStore } from '../../src/ports/event-store.ts';
import type { FanOutStore } from '../../src/ports/fan-out-store.ts';
import { Publication } from './publication.ts';
import { simulateConversions } from './simulated-conversions.ts';
import { ACCEPT_TOPIC, type SimulatedKafka } from './simulated-kafka.ts';
import {
  changesEndpoint,
  countRows,
  LOCK_TIMEOUT_MS,
  STATEMENT_TIMEOUT_MS,
  WRITES_ROWS,
} from './statements.ts';
import { Process, type Random, type VirtualTime } from './virtual-time.ts';
import type { Weather } from './weather.ts';

type Send = EngineStages['sender']['send'];

/** Everything that the processes of a world share. */
export interface Environment {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly store: MemoryStore;
  readonly eventStore: EventStore;
  readonly fanOuts: FanOutStore;
  readonly queue: DeliveryQueue;
  readonly bus: MemoryBus;
  /** The accept log. Null: events are stored at once. */
  readonly kafka: SimulatedKafka | null;
  /** Null: every process has a node of its own. */
  readonly hub: MemoryHandOverHub | null;
  readonly weather: () => Weather;
  /** Called for every call to the store. */
  readonly onCall: (operation: string, latencyMs: number) => void;
  readonly send: (from: SimulatedProcess, ...request: Parameters<Send>) => void;
}

/** The settings of the engine and of the accept stage. */
export type Limits = Omit<EngineConfig, 'role' | 'workerName'> & Required<IngestConfig>;

/** Small, so that a few deliveries are enough to reach a limit. */
const LIMITS: Limits = {
  maxSockets: 60,
  retrySocketShare: 0.4,
  laneItems: 20,
  laneBudgetItems: 400,
  unsettledCap: 60,
  carefulAfterCrashes: 3,
  heartbeatMs: 300,
  proofMs: 1_000,
  deadAfterMs: 8_000,
  carefulWindowMs: 600_000,
  laneBudgetBytes: 1024 * 1024,
  settleBatchRows: 20,
  settleLingerMs: 20,
  sweepMs: 5_000,
  retryAfterCapMs: 60_000,
  drainMs: 10_000,
  region: null,
  regionFallbackAfterMs: null,
  ingestBatchRows: 50,
  ingestBatchBytes: 1024 * 1024,
  acceptQueueEvents: 1_000,
  shedLoopDelayMs: 0,
  shedCommitMs: 0,
  acceptQueueBytes: 8 * 1024 * 1024,
  idempotencyTtlMs: 86_400_000,
  tenantIngestPerSecond: 0,
  tenantIngestBurst: 1,
  tenantUnwrittenDeliveries: 1_000_000,
  // So few that an event with some more endpoints is a large fan-out.
  deliveriesPerCommit: 4,
};

const KAFKA_CONFIG = loadConfig({
  mode: 'serve',
  env: {
    DATABASE_URL: 'postgres://database/posthorn',
    POSTHORN_BACKBONE: 'kafka',
    POSTHORN_KAFKA_BROKERS: 'broker:9092',
    POSTHORN_KAFKA_ACCEPT_TOPIC: ACCEPT_TOPIC,
    POSTHORN_KAFKA_RENEW_MS: '500ms',
    POSTHORN_KAFKA_LEASE_MS: '3s',
    POSTHORN_INGEST_BATCH_ROWS: '50',
  },
});
const DEPLOYMENT = 'simulation';

function newEventLog(
  kafka: SimulatedKafka,
  owner: Process,
  clock: Clock,
  onProblem: (what: string, error: unknown) => void,
): KafkaEventLog {
  const connect = async () => kafka.newWriter(owner);
  return new KafkaEventLog({ connect, deployment: DEPLOYMENT, clock, onProblem });
}

const OUTBOX = { pollMs: 500, standInMs: 5_000, batchRows: 50, batchBytes: 1024 * 1024 };

export interface ProcessOptions {
  readonly role?: EngineConfig['role'];
  readonly limits?: Partial<Limits>;
  /** The error of the clock of its machine. */
  readonly clockErrorMs?: number;
  /** False: it neither drains the outbox nor writes large fan-outs, so it does not poll the store for them. Default true. */
  readonly pollsStore?: boolean;
}

export class SimulatedProcess {
  readonly process: Process;
  readonly clock: DatabaseClock;
  readonly engine: Engine;
  readonly ingest: Ingest;
  readonly queue: DeliveryQueue;
  readonly notifier: MemoryNotifier;
  readonly handOver: MemoryHandOver | null;
  readonly role: EngineConfig['role'];
  /** When each kind of problem was last reported. */
  readonly problems = new Map<string, number>();
  readonly #environment: Environment;
  readonly #endpoints: MemoryEndpointDirectory;
  readonly #drainer: Drainer;
  readonly #log: KafkaEventLog | null;
  readonly #source: KafkaSource | null;
  readonly #pollsStore: boolean;

  constructor(name: string, environment: Environment, options: ProcessOptions = {}) {
    const { time, random, store, bus, kafka, hub, weather, onCall } = environment;
    this.#environment = environment;
    this.role = options.role ?? 'all';
    this.#pollsStore = options.pollsStore ?? true;
    const limits: Limits = { ...LIMITS, ...options.limits };
    this.process = new Process(name);
    this.process.clockErrorMs = options.clockErrorMs ?? 0;
    const machineClock = time.clockOf(this.process);
    const clock = new DatabaseClock(machineClock);
    this.clock = clock;
    let operation = '';
    const link = new Link({
      storeClock: time.storeClock,
      processClock: machineClock,
      onCall: (name) => {
        operation = name;
      },
      latencyMs: (_, parameters) => {
        const { latencyMs: chooseLatency, rowMs } = weather();
        const latencyMs = chooseLatency() + (rowMs === 0 ? 0 : rowMs * countRows(operation, parameters));
        onCall(operation, Math.min(latencyMs, STATEMENT_TIMEOUT_MS));
        return latencyMs;
      },
      fault: (operation) => weather().fault(operation),
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      lockWait: {
        timeoutMs: LOCK_TIMEOUT_MS,
        isLocked: (parameters) =>
          WRITES_ROWS.has(operation) && changesEndpoint(store, weather().lockedEndpoint, parameters),
      },
    });
    const onProblem = (what: string): void => void this.problems.set(what, time.now());

    this.#endpoints = new MemoryEndpointDirectory(withFaults(createMemoryEndpointSource(store), link));
    this.notifier = new MemoryNotifier({ bus, clock: machineClock });
    this.handOver = hub && new MemoryHandOver({ hub, clock: machineClock });
    this.queue = withFaults(environment.queue, link);
    const eventStore = withFaults(environment.eventStore, link);
    const announceFreeShards = announceThrough(this.notifier);
    this.engine = createEngine(
      {
        queue: this.queue,
        eventLookup: withFaults(createMemoryEventLookup(store), link),
        ownershipStore: withOwnershipFaults(createMemoryOwnershipStore({ store, announceFreeShards }), link),
        endpoints: this.#endpoints,
        notifier: this.notifier,
        handOver: this.handOver,
        clock,
        random: random.next,
      },
      {
        converter: simulateConversions({
          store: withFaults(createMemoryConversionStore(store), link),
          clock: machineClock,
          random,
          weather,
          onProblem,
        }),
        sender: { send: (...request) => environment.send(this, ...request) },
        observer: {
          onAnswered() {},
          onSettling() {},
          onShortage() {},
          onCircuitChanged() {},
          onLimitsChanged() {},
          onEndpointGone() {},
          onEndpointsConfirmed() {},
          onStoreReplaced() {},
        },
        onProblem,
      },
      { ...limits, role: this.role, workerName: name },
    );
    const catalogueStore = createMemoryCatalogueStore(store);
    this.#log = kafka && newEventLog(kafka, this.process, clock, onProblem);
    this.ingest = createIngest(
      {
        ...(this.#log !== null && {
          eventLog: {
            log: this.#log,
            claims: withFaults(createMemoryKeyClaims(store), link),
            closedTenants: createMemoryClosedTenants(store),
          },
        }),
        eventStore,
        eventLookup: withFaults(createMemoryEventLookup(store), link),
        fanOuts: withFaults(environment.fanOuts, link),
        endpoints: this.#endpoints,
        tenantLimits: createMemoryTenantLimits(store),
        catalogue: new EventCatalogue({ store: catalogueStore, onProblem }),
        catalogueStore,
        clock,
        random: random.next,
      },
      { router: this.engine.router, isStoreQuiet: this.engine.isStoreQuiet, onProblem },
      limits,
    );
    this.#drainer = new Drainer({
      ...OUTBOX,
      outbox: withFaults(createMemoryOutboxStore(store), link),
      sink: this.ingest.committedEvents,
      clock,
      isLeader: () => this.engine.isLeader,
      onRejected: () => {},
      onHeld: () => {},
      onProblem,
    });
    this.#source =
      kafka &&
      createKafkaSource({
        config: KAFKA_CONFIG,
        store: { kafka: withFaults(createMemoryKafkaStore(store), link) },
        deployment: DEPLOYMENT,
        ingest: this.ingest,
        clock,
        log: { error() {} },
        metrics: null,
        connect: async () => kafka.newReader(this.process),
        onProblem,
      });
    this.engine.onFacts(({ outboxSeq }) => this.#drainer.onSeq(outboxSeq));
  }

  get workerId() {
    return this.engine.ownership.workerId;
  }

  get isRunning(): boolean {
    return this.process.state === 'running';
  }

  get isDead(): boolean {
    return this.process.state === 'dead';
  }

  async start(): Promise<void> {
    // The store may not answer at first: try again, as a supervisor would.
    for (;;) {
      try {
        await this.#endpoints.refresh();
        break;
      } catch {
        await new Promise<void>(
          (resolve) => void this.#environment.time.after(100, this.process, () => resolve()),
        );
      }
    }
    await this.#log?.start();
    await this.notifier.start();
    await this.engine.start();
    this.#source?.start();
    if (!this.#pollsStore) return;
    this.ingest.fanOutWriter.start();
    this.#drainer.start();
  }

  async stop(): Promise<void> {
    await this.ingest.acceptor.waitUntilIdle();
    await this.#drainer.stop();
    await this.#source?.stop();
    await this.ingest.fanOutWriter.stop();
    await this.engine.stop();
    await this.notifier.stop();
    await this.#log?.stop();
  }

  /** Posts an event of a producer to this process. The answer arrives when virtual time advances. */
  post(event: NewEvent): Publication {
    const { time } = this.#environment;
    const publication = new Publication(event);
    time.after(0, this.process, () => {
      this.ingest.acceptor.accept(event).then(
        (accepted) => publication.recordAccepted(accepted, time.now()),
        (error) => publication.recordError(error, time.now()),
      );
    });
    return publication;
  }
}
