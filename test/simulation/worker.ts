/** One worker process: the engine of `createEngine`, on a model of the database and with a `send` of the world's. */
import { createEngine, type Engine } from '../../src/create-engine.ts';
import type { AttemptRequest } from '../../src/dispatch/attempts.ts';
import type { Ownership } from '../../src/dispatch/index.ts';
import { type Clock, DatabaseClock } from '../../src/domain/clock.ts';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import type { EventContent } from '../../src/domain/event.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';
import type { NewDelivery } from '../../src/ports/accept-log.ts';
import type { EndpointDirectory } from '../../src/ports/endpoint-directory.ts';
import type { Commit, CommittedDelivery, HandOver } from '../../src/ports/hand-over.ts';
import { createPostgresEventLookup } from '../../src/postgres/accept-log.ts';
import { createPostgresDeliveryQueue } from '../../src/postgres/delivery-queue.ts';
import { PostgresNotifier } from '../../src/postgres/notifier.ts';
import { createPostgresOwnershipStore } from '../../src/postgres/ownership-store.ts';
import type { MemoryDatabase } from './memory-database.ts';
import { Process } from './virtual-time.ts';

export interface Limits {
  readonly maxSockets: number;
  readonly retrySocketShare: number;
  readonly laneItems: number;
  readonly laneBudgetItems: number;
  readonly unsettledCap: number;
  readonly carefulAfterCrashes: number;
}

const CRASH_WINDOW_MS = 600_000;

export const LIMITS: Limits = {
  maxSockets: 60,
  retrySocketShare: 0.4,
  laneItems: 20,
  laneBudgetItems: 400,
  unsettledCap: 60,
  carefulAfterCrashes: 3,
};

/** All endpoints there are, with the version of their last change. */
export class EndpointTable {
  readonly rows = new Map<Uuid, { endpoint: Endpoint; version: number }>();
  readonly #database: MemoryDatabase;

  constructor(database: MemoryDatabase) {
    this.#database = database;
  }

  put(endpoint: Endpoint): void {
    this.#database.endpointVersion += 1;
    this.rows.set(endpoint.id, { endpoint, version: this.#database.endpointVersion });
  }
}

/** What a worker does in the world around it. */
export interface Surroundings {
  send(worker: Worker, request: AttemptRequest, done: (outcome: AttemptOutcome) => void): void;
  /** Returns false if no sibling has announced this shard. */
  handOver(from: Worker, delivery: NewDelivery, event: EventContent, commit: Commit): boolean;
}

export class Worker {
  readonly process: Process;
  readonly engine: Engine;
  readonly ownership: Ownership;
  readonly notifier: PostgresNotifier;
  readonly clock: Clock;
  readonly problems = new Map<string, number>();
  readonly cache: EndpointDirectory;
  #onReceived: Parameters<HandOver['onReceived']>[0] = () => {};

  constructor(
    name: string,
    database: MemoryDatabase,
    table: EndpointTable,
    limits: Limits,
    surroundings: Surroundings,
  ) {
    this.process = new Process(name);
    const clock = new DatabaseClock(database.time.clockOf(this.process));
    this.clock = clock;
    const pool = database.poolOf(this.process);
    const pools = { pool: () => pool };
    this.cache = this.#createCache(database, table);
    const onProblem = (what: string): void => void this.problems.set(what, database.time.now());
    this.notifier = new PostgresNotifier({ database: pools, clock, onProblem });
    this.engine = createEngine(
      {
        queue: createPostgresDeliveryQueue(pools),
        eventLookup: createPostgresEventLookup(pools),
        ownershipStore: createPostgresOwnershipStore(pools),
        endpoints: this.cache,
        notifier: this.notifier,
        handOver: {
          offer: (delivery, event, commit) => surroundings.handOver(this, delivery, event, commit),
          announceShards: () => {},
          onReceived: (handler) => {
            this.#onReceived = handler;
          },
          start: async () => {},
          stop: async () => {},
        },
        clock,
        random: database.random.next,
      },
      {
        send: (request, done) => surroundings.send(this, request, done),
        observer: {
          onAnswered: () => {},
          onSettling: () => {},
          onCircuitChanged: () => {},
          onEndpointGone: () => {},
          onEndpointsConfirmed: () => {},
        },
        onProblem,
      },
      {
        workerName: name,
        role: 'worker',
        heartbeatMs: 300,
        proofMs: 1_000,
        deadAfterMs: 8_000,
        ...limits,
        carefulWindowMs: CRASH_WINDOW_MS,
        laneBudgetBytes: 1024 * 1024,
        settleBatchRows: 20,
        sweepMs: 5_000,
        retryAfterCapMs: 60_000,
        drainMs: 10_000,
      },
    );
    this.ownership = this.engine.ownership;
  }

  async start(): Promise<void> {
    await this.cache.refresh();
    await this.notifier.start();
    await this.engine.start();
  }

  async stop(): Promise<void> {
    await this.engine.stop();
    await this.notifier.stop();
  }

  /** A sibling has handed deliveries over. */
  receive(deliveries: readonly CommittedDelivery[], commit: Commit): void {
    this.#onReceived(deliveries, commit);
  }

  #createCache(database: MemoryDatabase, table: EndpointTable): EndpointDirectory {
    const endpoints = new Map<Uuid, Endpoint>();
    const listeners: ((changed: readonly Endpoint[]) => void)[] = [];
    let version = 0;
    return {
      get version() {
        return version;
      },
      reads: 0,
      get: (id) => endpoints.get(id),
      all: () => endpoints.values(),
      refresh: () =>
        new Promise((resolve) => {
          database.time.after(database.weather.latency(), this.process, () => {
            const changed = [...table.rows.values()].filter((row) => row.version > version);
            version = database.endpointVersion;
            for (const { endpoint } of changed) endpoints.set(endpoint.id, endpoint);
            for (const listener of listeners) listener(changed.map(({ endpoint }) => endpoint));
            resolve();
          });
        }),
      onChange: (listener) => void listeners.push(listener),
      forget: (id) => void endpoints.delete(id),
    };
  }
}
