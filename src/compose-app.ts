/** Composes the parts of a process. Nothing runs before `app.ts` starts them. */
import type { AppOptions } from './app.ts';
import type { AppMetrics } from './app-metrics.ts';
import { CatalogueSync } from './catalogue-sync.ts';
import { type Config, readVersion } from './config/index.ts';
import { type Background, createBackground } from './create-background.ts';
import { type ConvertStage, createConversions } from './create-conversions.ts';
import { createEngine, type Engine } from './create-engine.ts';
import { createHandOver } from './create-hand-over.ts';
import { createIngest, type Ingest } from './create-ingest.ts';
import { createServers, type Servers } from './create-server.ts';
import {
  createDeliverer,
  type Deliverer,
  type EgressPolicy,
  Mailer,
  SmtpTransport,
  sendAlsoNotices,
} from './deliver/index.ts';
import type { DatabaseClock } from './domain/clock.ts';
import { newId } from './domain/ids.ts';
import { EngineTelemetry } from './engine-telemetry.ts';
import { Confirmations } from './manage/confirmations.ts';
import { openStore } from './open-store.ts';
import type { Notifier } from './ports/notifier.ts';
import type { Database } from './postgres/database.ts';
import { PostgresNotifier } from './postgres/notifier.ts';
import { LiveTail } from './telemetry/live-tail/index.ts';
import { type Tracer, traceSending } from './telemetry/tracing.ts';
import { TenantSync } from './tenant-sync.ts';

export interface ComposeOptions extends AppOptions {
  readonly database: Database;
  readonly clock: DatabaseClock;
  readonly workerName: string;
  readonly metrics: AppMetrics | null;
  readonly tracer: Tracer | null;
  readonly isLeaving: () => boolean;
  readonly onProblem: (what: string, error: unknown) => void;
}

export interface AppParts {
  readonly notifier: Notifier;
  readonly deliverer: Deliverer;
  readonly mailer: Mailer;
  readonly tail: LiveTail;
  readonly engine: Engine;
  readonly ingest: Ingest;
  readonly tenants: TenantSync;
  readonly catalogue: CatalogueSync;
  readonly convertStage: ConvertStage;
  readonly background: Background;
  readonly metrics: AppMetrics | null;
  readonly servers: Servers;
  readonly address: Address;
}

/** The public address. With port 0 it is known when the server listens. */
interface Address {
  publicUrl: string;
}

const TAIL_ANNOUNCE_MS = 5_000;

export async function composeApp(options: ComposeOptions): Promise<AppParts> {
  const { config, log, gatherMetrics, database, clock, workerName } = options;
  const { metrics, tracer, onProblem } = options;
  const store = await openStore(database, { config, log, onProblem });
  const { endpoints } = store;
  const address: Address = { publicUrl: config.publicUrl };
  const egress = egressPolicyOf(config);
  const deliverer = openDeliverer(config, egress, address, clock);
  const notifier = new PostgresNotifier({ database, clock, onProblem });
  const tail = new LiveTail({
    clock,
    processName: newId(clock.now()),
    messagesPerSecond: config.streamMessagesPerSecond,
    announceMs: TAIL_ANNOUNCE_MS,
    notifier,
    onProblem,
  });
  endpoints.onChange((changed) => tail.endpointsChanged(changed));

  const pool = database.pool('api');
  const confirmations = new Confirmations({
    pool,
    clock,
    secretBox: store.secretBox,
    confirmationTtlMs: config.confirmationTtlMs,
    get publicUrl() {
      return address.publicUrl;
    },
  });
  const mailer = openMailer(config, confirmations, address, clock);
  const send = sendAlsoNotices(deliverer, mailer);
  const convertStage = await createConversions({
    ...store,
    versions: store.catalogue,
    config,
    clock,
    log,
    metrics,
    onProblem,
  });
  const engine = createEngine(
    {
      ...store,
      notifier,
      handOver: createHandOver(options, store),
      clock,
      random: Math.random,
    },
    {
      converter: convertStage.converter,
      send: tracer === null ? send : traceSending(tracer, send),
      observer: new EngineTelemetry({ clock, log, metrics, tail, pool, endpoints, onProblem }),
      tail,
      onBatchWritten: metrics?.settleCommits.written,
      onProblem,
    },
    { ...config, workerName },
  );
  const ingest = createIngest(
    { ...store, clock, random: Math.random },
    {
      router: engine.router,
      observers: {
        metrics: metrics?.accepts,
        tail,
        tracer,
        onFailed: (error) => onProblem('show accepted events in live tails and traces', error),
      },
      schemaMetrics: metrics?.accepts,
      onBatchWritten: metrics?.acceptCommits.written,
      onProblem,
    },
    config,
  );
  const parts = {
    config,
    store,
    clock,
    log,
    engine,
    ingest,
    notifier,
    deliverer,
    mailer,
    confirmations,
    convertStage,
    metrics,
    address,
    program: options.program,
    onProblem,
  };
  metrics?.connect({ ...parts, ...store });
  const tenants = new TenantSync(parts);
  const catalogue = new CatalogueSync({ ...parts, catalogue: store.catalogue });
  const background = createBackground(parts);
  const servers = await createServers({
    ...parts,
    egress,
    tail,
    tracer,
    gatherMetrics,
    isLeaving: options.isLeaving,
  });
  return { ...parts, tail, tenants, catalogue, background, servers };
}

function egressPolicyOf(config: Config): EgressPolicy {
  return {
    allow: config.egressAllow,
    deny: config.egressDeny,
    requireHttps: config.egressHttps !== 'optional',
    allowHttpToLoopback: config.egressHttps === 'except-loopback',
    allowedPorts: config.egressPorts.length === 0 ? 'any' : config.egressPorts,
  };
}

function openMailer(
  { smtpUrl, smtpFrom }: Config,
  confirmations: Confirmations,
  address: Address,
  clock: DatabaseClock,
): Mailer {
  return new Mailer({
    transport: smtpUrl === null ? null : new SmtpTransport(smtpUrl),
    from: smtpFrom ?? '',
    confirmations,
    clock,
    get publicUrl() {
      return address.publicUrl;
    },
  });
}

function openDeliverer(
  config: Config,
  egress: EgressPolicy,
  address: Address,
  clock: DatabaseClock,
): Deliverer {
  return createDeliverer({
    egress,
    userAgent: `Posthorn/${readVersion()}`,
    get publicUrl() {
      return address.publicUrl;
    },
    // A receiver that consented cannot consent for the host that it redirects to.
    redirectsWithinHost: config.requireChallenge,
    hidesForbiddenNames: config.egressErrors === 'uniform',
    connectTimeoutMs: config.connectTimeoutMs,
    responseCapBytes: config.responseCapBytes,
    proxyUrl: config.egressProxy,
    clock,
  });
}
