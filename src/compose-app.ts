/** Composes the parts of a process. Nothing runs before `app.ts` starts them. */
import type { AppOptions } from './app.ts';
import type { AppMetrics } from './app-metrics.ts';
import { CatalogueSync } from './catalogue-sync.ts';
import { type Config, readVersion } from './config/index.ts';
import { type Background, createBackground } from './create-background.ts';
import { type ConvertStage, createConversions } from './create-conversions.ts';
import { createEngine, type Engine } from './create-engine.ts';
import { createEventLog, type EventLogParts } from './create-event-log.ts';
import { createHandOver } from './create-hand-over.ts';
import { createIngest, type Ingest } from './create-ingest.ts';
import { createReadinessCheck, createReadinessWatch, watchAccepts } from './create-readiness.ts';
import { createRedis, type RedisParts } from './create-redis.ts';
import { createServers, type Servers } from './create-server.ts';
import {
  createDeliverer,
  createSender,
  type Deliverer,
  type EgressPolicy,
  Mailer,
  SmtpTransport,
} from './deliver/index.ts';
import type { DatabaseClock } from './domain/clock.ts';
import { newId } from './domain/ids.ts';
import type { Service } from './domain/lifecycle.ts';
import { LocalBuckets } from './domain/local-buckets.ts';
import { EngineTelemetry } from './engine-telemetry.ts';
import { Confirmations } from './manage/confirmations.ts';
import { openStore, type Store } from './open-store.ts';
import { OutboxWatch } from './outbox-watch.ts';
import type { EventStore } from './ports/event-store.ts';
import type { Notifier } from './ports/notifier.ts';
import type { RateBuckets } from './ports/rate-limits.ts';
import type { Database } from './postgres/database.ts';
import { PostgresNotifier } from './postgres/notifier.ts';
import { LiveTail, MAX_MISSED_ANNOUNCEMENTS, TailChannels } from './telemetry/live-tail/index.ts';
import { type Tracer, traceSending } from './telemetry/tracing.ts';
import { TenantSync } from './tenant-sync.ts';
import { traceAccepting } from './trace-accepting.ts';

export interface ComposeOptions extends AppOptions {
  readonly database: Database;
  readonly clock: DatabaseClock;
  readonly workerName: string;
  readonly metrics: AppMetrics | null;
  readonly tracer: Tracer | null;
  readonly isStopping: () => boolean;
  readonly onProblem: (what: string, error: unknown) => void;
}

export interface AppParts {
  readonly notifier: Notifier;
  /** Null: it is not configured. */
  readonly redis: RedisParts | null;
  readonly deliverer: Deliverer;
  readonly mailer: Mailer;
  readonly tail: LiveTail;
  readonly engine: Engine;
  readonly ingest: Ingest;
  /** Accepts events from requests, with a trace if tracing is on. */
  readonly acceptor: Pick<Ingest['acceptor'], 'accept'>;
  readonly eventLog: EventLogParts['eventLog'];
  readonly unstoredEvents: EventLogParts['unstoredEvents'];
  readonly tenants: TenantSync;
  readonly catalogue: CatalogueSync;
  readonly convertStage: ConvertStage;
  readonly background: Background;
  readonly metrics: AppMetrics | null;
  /** Logs when the process is no longer ready. */
  readonly readiness: Service;
  readonly outboxWatch: Service;
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
  const redis = await createRedis(options, store);
  const rateBuckets = redis?.buckets ?? new LocalBuckets(clock);
  const { tail, tailChannels } = openLiveTail(options, notifier, redis);
  endpoints.onChange((changed) => tail.endpointsChanged(changed));

  const pool = database.pool('api');
  const confirmations = openConfirmations(options, store, address);
  const mailer = openMailer(config, confirmations, address, clock);
  const sender = createSender(deliverer, mailer);
  const convertStage = await createConversions({ ...options, ...store, versions: store.catalogue });
  const engine = createEngine(
    {
      ...store,
      notifier,
      handOver: createHandOver(options, { peers: store.peers, bus: redis?.bus ?? null }),
      clock,
      random: Math.random,
    },
    {
      converter: convertStage.converter,
      sender: tracer === null ? sender : traceSending(tracer, sender),
      observer: new EngineTelemetry({ clock, log, metrics, tail, pool, endpoints, onProblem }),
      tail,
      onBatchWritten: metrics?.settleCommits.written,
      onProblem,
    },
    { ...config, workerName },
  );
  const { eventStore, accepts } = watchAccepts(store.eventStore, clock);
  const logParts = await createEventLog(options, store);
  const { eventLog } = logParts;
  const ingest = openIngest(options, { store, eventStore, eventLog, rateBuckets, engine, tail });
  const acceptor = tracer === null ? ingest.acceptor : traceAccepting(tracer, ingest.acceptor);
  const parts = {
    config,
    store,
    clock,
    log,
    engine,
    ingest,
    acceptor,
    notifier,
    redis,
    rateBuckets,
    deliverer,
    mailer,
    confirmations,
    convertStage,
    ...logParts,
    metrics,
    address,
    program: options.program,
    isStopping: options.isStopping,
    onProblem,
  };
  if (metrics !== null && eventLog !== null) metrics.kafka.acceptLog = eventLog.log.counts;
  metrics?.connect({ ...parts, ...store, tailChannels });
  const tenants = new TenantSync(parts);
  const catalogue = new CatalogueSync({ ...parts, catalogue: store.catalogue });
  const background = createBackground(parts);
  const findMissing = createReadinessCheck({ ...parts, accepts });
  const readiness = createReadinessWatch({ ...parts, accepts }, findMissing);
  const outboxWatch = new OutboxWatch({ outbox: store.outbox, clock, log });
  const servers = await createServers({ ...parts, egress, tail, gatherMetrics, findMissing });
  return { ...parts, tail, tenants, catalogue, background, readiness, outboxWatch, servers };
}

interface IngestParts {
  readonly store: Store;
  readonly eventStore: EventStore;
  readonly eventLog: EventLogParts['eventLog'];
  readonly rateBuckets: RateBuckets;
  readonly engine: Engine;
  readonly tail: LiveTail;
}

function openIngest(
  { config, clock, metrics, tracer, onProblem }: ComposeOptions,
  { store, eventStore, eventLog, rateBuckets, engine, tail }: IngestParts,
): Ingest {
  const ports = { ...store, eventStore, rateBuckets, clock, random: Math.random };
  return createIngest(
    eventLog === null ? ports : { ...ports, eventLog },
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
      isStoreQuiet: engine.isStoreQuiet,
      // While PostgreSQL is slow, events wait in the log: that is what it is for.
      deliveryLoad: () => (eventLog === null ? engine.deliveryLoad : { ...engine.deliveryLoad, commitMs: 0 }),
      onProblem,
    },
    config,
  );
}

/** The messages of live tails go through Redis if it is configured. */
function openLiveTail(
  { config, clock, onProblem }: ComposeOptions,
  notifier: Notifier,
  redis: RedisParts | null,
): { readonly tail: LiveTail; readonly tailChannels: TailChannels | null } {
  const processName = newId(clock.now());
  const interestMs = TAIL_ANNOUNCE_MS * MAX_MISSED_ANNOUNCEMENTS;
  const tailChannels =
    redis && new TailChannels({ notifier, bus: redis.bus, clock, processName, interestMs, onProblem });
  const tail = new LiveTail({
    clock,
    processName,
    messagesPerSecond: config.streamMessagesPerSecond,
    announceMs: TAIL_ANNOUNCE_MS,
    notifier: tailChannels ?? notifier,
    onProblem,
  });
  return { tail, tailChannels };
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

function openConfirmations(
  { config, database, clock }: ComposeOptions,
  { secretBox }: Pick<Store, 'secretBox'>,
  address: Address,
): Confirmations {
  return new Confirmations({
    pool: database.pool('api'),
    clock,
    secretBox,
    confirmationTtlMs: config.confirmationTtlMs,
    get publicUrl() {
      return address.publicUrl;
    },
  });
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
