/** Starts a process of Posthorn: opens the database, composes its parts, and starts and stops them in order. */
import type { Server } from 'node:net';
import { hostname } from 'node:os';

import { AppMetrics } from './app-metrics.ts';
import { type AppParts, composeApp } from './compose-app.ts';
import type { ConfigWithKeys } from './config/index.ts';
import { createTracer } from './create-tracer.ts';
import { isReservedHeader } from './deliver/index.ts';
import { DatabaseClock, systemClock } from './domain/clock.ts';
import { inParallel, onStop, type Service, startAll, stopAll } from './domain/lifecycle.ts';
import { type AcceptAnswer, readEvent } from './ingest/index.ts';
import { LameDuck } from './lame-duck.ts';
import { Listener } from './listener.ts';
import { type Database, DISPATCH_CONNECTIONS, openDatabase } from './postgres/database.ts';
import { checkRoute } from './postgres/pooler.ts';
import { clockJumpLogger } from './telemetry/clock-jumps.ts';
import type { Log } from './telemetry/log.ts';
import type { Sample } from './telemetry/metrics/index.ts';
import { recurringProblems } from './telemetry/recurring-problems.ts';

export interface App {
  readonly url: string;
  /** Accepts an event in the format of `POST /v1/events`, of any tenant. */
  publish(body: Buffer): Promise<AcceptAnswer>;
  /** The metrics of this process. */
  readMetrics(): Sample[];
  stop(): Promise<void>;
}

export type AppConfig = ConfigWithKeys & { readonly databaseUrl: string };

export interface AppOptions {
  readonly config: AppConfig;
  readonly log: Log;
  /** False: this process does not listen, because others of its node answer the requests. */
  readonly listens?: boolean;
  /** Returns the server that has answered on the port until now. The app takes its socket over, so the port stays open. */
  readonly takeOverPort?: () => Promise<Server | null>;
  /** Called when this process listens. */
  readonly onListening?: () => Promise<void>;
  /** Metrics of all processes of this node. Null if they cannot be asked now. */
  readonly gatherMetrics?: () => Promise<Sample[] | null>;
  /** The program of the CLI, which also runs as the archive process. Default: that of this package. */
  readonly program?: string | undefined;
  /** The directory of the sockets between the processes of this node, and the number of this one. */
  readonly siblings?: { readonly directory: string; readonly number: number } | undefined;
}

export async function startApp(options: AppOptions): Promise<App> {
  const { config, log } = options;
  const database = openDatabase({
    connectionString: config.databaseUrl,
    directConnectionString: config.directDatabaseUrl,
    role: config.role,
    apiConnections: config.databasePoolSize,
    dispatchConnections: DISPATCH_CONNECTIONS,
    onIdleError: (purpose, error) => log.debug({ err: error, purpose }, 'lost an idle database connection'),
  });
  try {
    await checkRoute(config);
    return await startOn(database, options);
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function startOn(database: Database, options: AppOptions): Promise<App> {
  const { config, log } = options;
  const metrics = config.metrics === 'on' ? new AppMetrics(config) : null;
  const logProblem = recurringProblems(log, systemClock);
  const onProblem = (what: string, error: unknown): void => {
    metrics?.countProblem();
    logProblem(what, error);
  };
  const clock = new DatabaseClock(systemClock, clockJumpLogger(log));
  const workerName = `${hostname()}:${process.pid}`;
  const tracer = await createTracer(config, clock, workerName, onProblem);
  const lameDuck = new LameDuck(options.listens === false ? 0 : config.lameDuckMs, clock);
  const isStopping = (): boolean => lameDuck.isStopping;
  const parts = await composeApp({
    ...options,
    database,
    clock,
    workerName,
    metrics,
    tracer,
    isStopping,
    onProblem,
  }).catch(async (error: unknown) => {
    await tracer?.stop();
    throw error;
  });
  const listener = new Listener(parts.servers, options, parts.address);
  const services = servicesOf(
    parts,
    listener,
    onStop(() => Promise.all([database.close(), tracer?.stop()])),
  );
  await startAll(services);
  let stopping: Promise<void> | null = null;
  return {
    url: listener.url,
    publish: async (body) =>
      parts.acceptor.accept(
        readEvent(body, config, { keyTenant: null, idempotencyKey: null, isReservedHeader }),
      ),
    readMetrics: () => metrics?.metrics.read() ?? [],
    stop: () => {
      stopping ??= lameDuck.wait().then(() => stopAll(services));
      return stopping;
    },
  };
}

/** Services in the order in which they start. They stop in reverse: refuse new events, finish accepted ones, hand over, record results. */
function servicesOf(parts: AppParts, listener: Listener, connections: Service): readonly Service[] {
  const { notifier, redis, deliverer, mailer, convertStage } = parts;
  const { engine, ingest, tenants, catalogue, background } = parts;
  return [
    connections,
    onStop(() => Promise.all([deliverer.close(), mailer.close()])),
    onStop(() => convertStage.running?.pool.close()),
    ...(redis === null ? [] : [redis.link]),
    ...(parts.unstoredEvents === null ? [] : [parts.unstoredEvents]),
    ...(parts.eventLog === null ? [] : [parts.eventLog.log]),
    inParallel(parts.tail, background.stats),
    notifier,
    engine,
    inParallel(
      tenants,
      catalogue,
      background.upkeep,
      background.operationalEvents,
      background.tasks,
      background.archive,
      parts.readiness,
      parts.outboxWatch,
      parts.metrics,
    ),
    ingest.fanOutWriter,
    ingest.shedder,
    onStop(() => ingest.acceptor.waitUntilIdle()),
    inParallel(background.drainer, background.kafka, listener),
  ];
}
