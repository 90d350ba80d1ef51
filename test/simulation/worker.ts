/** One worker process: the real dispatch and settle stages, wired as `app.ts` does it, on a model of the database. */
import type { AttemptRequest } from '../../src/dispatch/attempts.ts';
import { Dispatcher, Ownership } from '../../src/dispatch/index.ts';
import { type Clock, DatabaseClock } from '../../src/domain/clock.ts';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import type { EventContent } from '../../src/domain/event.ts';
import type { Uuid } from '../../src/domain/ids.ts';
import type { AttemptOutcome } from '../../src/domain/outcome.ts';
import type { NewDelivery } from '../../src/ports/accept-log.ts';
import type { EndpointDirectory } from '../../src/ports/endpoint-directory.ts';
import { createPostgresEventLookup } from '../../src/postgres/accept-log.ts';
import { createPostgresDeliveryQueue } from '../../src/postgres/delivery-queue.ts';
import { PostgresNotifier } from '../../src/postgres/notifier.ts';
import { createPostgresOwnershipStore } from '../../src/postgres/ownership-store.ts';
import { decide, expiresAt, Settler, signalOf } from '../../src/settle/index.ts';
import type { MemoryDatabase } from './memory-database.ts';
import { Process } from './virtual-time.ts';

export interface Limits {
  readonly maxSockets: number;
  readonly retrySocketShare: number;
  readonly laneItems: number;
  readonly budgetItems: number;
  readonly unsettledCap: number;
  readonly carefulAfterCrashes: number;
}

const CRASH_WINDOW_MS = 600_000;

export const LIMITS: Limits = {
  maxSockets: 60,
  retrySocketShare: 0.4,
  laneItems: 20,
  budgetItems: 400,
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

/** Returns false if no sibling has said that it works on this shard. */
type ToSibling = (from: Worker, delivery: NewDelivery, event: EventContent, commitSentAt: number) => boolean;

export class Worker {
  readonly process: Process;
  readonly dispatcher: Dispatcher;
  readonly ownership: Ownership;
  readonly settler: Settler;
  readonly notifier: PostgresNotifier;
  readonly clock: Clock;
  readonly problems = new Map<string, number>();
  readonly cache: EndpointDirectory;
  readonly #toSibling: ToSibling;

  constructor(
    name: string,
    database: MemoryDatabase,
    table: EndpointTable,
    send: (worker: Worker, request: AttemptRequest, done: (outcome: AttemptOutcome) => void) => void,
    limits: Limits,
    toSibling: ToSibling,
  ) {
    this.#toSibling = toSibling;
    this.process = new Process(name);
    const clock = new DatabaseClock(database.time.clockOf(this.process));
    this.clock = clock;
    const pool = database.poolOf(this.process);
    const cache = this.#createCache(database, table);
    this.cache = cache;
    const problem = (what: string): void => void this.problems.set(what, database.time.now());
    const ofPool = { pool: () => pool };
    const queue = createPostgresDeliveryQueue(ofPool);
    this.settler = new Settler({
      sink: queue,
      clock,
      batchRows: 20,
      worker: () => ({ id: this.ownership.workerId, name }),
      failed: () => problem('settle'),
    });
    this.dispatcher = new Dispatcher({
      queue,
      eventLookup: createPostgresEventLookup(ofPool),
      clock,
      endpoints: cache,
      ownership: () => this.ownership,
      problem,
      stages: {
        send: (request, done) => send(this, request, done),
        decide: (outcome, delivery, policy) =>
          decide(outcome, delivery, policy, {
            now: clock.now(),
            random: database.random.next,
            retryAfterCapMs: 60_000,
          }),
        signalOf,
        expiresAt,
        settle: (settlement, health, done) => this.settler.settle(settlement, health, done),
      },
      events: { answered: () => {}, circuitChanged: () => {}, gone: () => {} },
      ...limits,
      budgetBytes: 1024 * 1024,
      sweepMs: 5_000,
      retryAfterCapMs: 60_000,
      handOverMs: 1_000,
      carefulWindowMs: CRASH_WINDOW_MS,
      hasSiblings: true,
    });
    this.notifier = new PostgresNotifier({ database: ofPool, clock, onProblem: problem });
    this.ownership = new Ownership({
      store: createPostgresOwnershipStore(ofPool),
      workerName: name,
      clock,
      heartbeatMs: 300,
      leaseMs: 1_000,
      deadAfterMs: 8_000,
      crashWindowMs: CRASH_WINDOW_MS,
      onProblem: problem,
    });
    this.ownership.addListener({
      onShardsTaken: (shards) => this.dispatcher.shardsTaken(shards),
      onShardsLost: (shards) => this.dispatcher.shardsLost(shards),
      onShardsSurplus: (shards) =>
        void this.dispatcher.handOver(shards, (given) => this.ownership.release(given)),
      onFacts: ({ now, endpointVersion, lastSeq }, roundTripMs) => {
        clock.heard(now, roundTripMs);
        this.dispatcher.renewed(lastSeq);
        if (endpointVersion !== cache.version) void cache.refresh();
      },
    });
    this.notifier.subscribe('wake', ({ endpointIds, scope }) => {
      for (const id of endpointIds) this.dispatcher.wake(id, scope);
    });
    this.notifier.subscribe('shards', () => this.ownership.hurry());
    this.notifier.onReconnected(() => this.dispatcher.sweepSoon());
    cache.onChange((changed) => this.dispatcher.endpointsChanged(changed));
  }

  async start(): Promise<void> {
    await this.cache.refresh();
    await this.notifier.start();
    await this.ownership.start();
    this.dispatcher.start();
  }

  async stop(): Promise<void> {
    const held = await this.ownership.beginStop();
    await this.dispatcher.handOver(held, (given) => this.ownership.release(given), 5_000);
    await this.dispatcher.stop();
    await this.settler.drained();
    await this.ownership.stop();
    await this.notifier.stop();
  }

  /** Just committed by this process. */
  handOn(delivery: NewDelivery, event: EventContent, commitSentAt: number): void {
    if (this.dispatcher.offer(delivery, event)) return;
    if (!this.#toSibling(this, delivery, event, commitSentAt)) this.#wake(delivery.endpointId);
  }

  /** Committed by a sibling. */
  handedOn(delivery: NewDelivery, event: EventContent, commitSentAt: number): void {
    if (!this.dispatcher.offerOfSibling(delivery, event, commitSentAt)) this.#wake(delivery.endpointId);
  }

  #wake(endpointId: Uuid): void {
    this.notifier.publish('wake', [{ endpointIds: [endpointId], scope: 'recent' }]);
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
