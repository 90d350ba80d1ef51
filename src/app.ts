/** Starts a process of Posthorn: opens the database, composes its parts, and starts and stops them in order. */
import { hostname } from 'node:os';

import { AppMetrics } from './app-metrics.ts';
import { type AppParts, composeApp } from './compose-app.ts';
import { type ConfigWithKeys, readVersion, withListeningPort } from './config/index.ts';
import { isReservedHeader } from './deliver/index.ts';
import { type Clock, DatabaseClock, systemClock } from './domain/clock.ts';
import { inParallel, onStop, type Service, startAll, stopAll } from './domain/lifecycle.ts';
import { type Accepted, readEvent } from './ingest/index.ts';
import { tracedAccept } from './manage/traced-accept.ts';
import { type Database, DISPATCH_CONNECTIONS, openDatabase } from './postgres/database.ts';
import { checkRoute } from './postgres/pooler.ts';
import { clockJumpLogger } from './telemetry/clock-jumps.ts';
import type { Log } from './telemetry/log.ts';
import type { Sample } from './telemetry/metrics/index.ts';
import { recurringProblems } from './telemetry/recurring-problems.ts';
import type { Tracer } from './telemetry/tracing.ts';

export interface App {
  readonly url: string;
  /** Accepts an event in the format of `POST /v1/events`, of any tenant. */
  publish(body: Buffer): Promise<Accepted>;
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
  const lameDuck = new LameDuck(options, clock);
  const isLeaving = (): boolean => lameDuck.isLeaving;
  const parts = await composeApp({
    ...options,
    database,
    clock,
    workerName,
    metrics,
    tracer,
    isLeaving,
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
  const accept = tracedAccept(tracer, parts.ingest.acceptor);
  let stopping: Promise<void> | null = null;
  return {
    url: listener.url,
    publish: async (body) =>
      accept(readEvent(body, config, { keyTenant: null, idempotencyKey: null, isReservedHeader })),
    readMetrics: () => metrics?.metrics.read() ?? [],
    stop: () => {
      stopping ??= lameDuck.wait().then(() => stopAll(services));
      return stopping;
    },
  };
}

/** Services in the order in which they start. They stop in reverse: refuse new events, finish accepted ones, hand over, record results. */
function servicesOf(parts: AppParts, listener: Listener, connections: Service): readonly Service[] {
  const { notifier, deliverer, mailer, convertStage, engine, ingest, tenants, catalogue, background } = parts;
  return [
    connections,
    onStop(() => Promise.all([deliverer.close(), mailer.close()])),
    onStop(() => convertStage.running?.pool.close()),
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
      parts.metrics,
    ),
    ingest.fanOutWriter,
    onStop(() => ingest.acceptor.waitUntilIdle()),
    inParallel(background.drainer, listener),
  ];
}

/**
 * The first phase of a stop: the process is unready but still serves, so that load balancers send new requests elsewhere
 * before it closes.
 */
class LameDuck {
  isLeaving = false;
  readonly #options: AppOptions;
  readonly #clock: Clock;

  constructor(options: AppOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  async wait(): Promise<void> {
    const { config, listens = true } = this.#options;
    this.isLeaving = true;
    if (!listens || config.lameDuckMs === 0) return;
    await new Promise<void>((resolve) => this.#clock.after(config.lameDuckMs, resolve));
  }
}

/** Listens for requests, unless other processes of this node do. */
class Listener implements Service {
  url: string;
  readonly #servers: AppParts['servers'];
  readonly #options: AppOptions;
  readonly #address: { publicUrl: string };

  constructor(servers: AppParts['servers'], options: AppOptions, address: { publicUrl: string }) {
    this.#servers = servers;
    this.#options = options;
    this.#address = address;
    this.url = options.config.publicUrl;
  }

  async start(): Promise<void> {
    const { config, listens = true } = this.#options;
    if (!listens) return;
    const { server, metricsServer } = this.#servers;
    this.url = await server.listen({ port: config.port, host: config.host });
    if (config.metricsAddr !== null) await metricsServer?.listen({ ...config.metricsAddr });
    this.#address.publicUrl = withListeningPort(config, Number(new URL(this.url).port)).publicUrl;
  }

  async stop(): Promise<void> {
    const { server, metricsServer } = this.#servers;
    await Promise.all([server.close(), metricsServer?.close()]);
  }
}

async function createTracer(
  config: AppConfig,
  clock: Clock,
  instance: string,
  problem: (what: string, error: unknown) => void,
): Promise<Tracer | null> {
  if (config.tracing === 'off') return null;
  const { createOtelTracer } = await import('./telemetry/otel-tracer.ts');
  return createOtelTracer({
    endpoint: config.tracingEndpoint,
    sampleRate: config.tracingSampleRate,
    flushMs: config.tracingFlushMs,
    serviceName: config.tracingServiceName,
    version: readVersion(),
    instance,
    clock,
    problem,
  });
}
