/** The only file that wires implementations: what each part needs of the others is written here and nowhere else. */
import { hostname } from 'node:os';
import { Authenticator } from './api/auth.ts';
import { trustProxies } from './api/client-address.ts';
import { EndpointChallenges } from './api/endpoint-challenge.ts';
import { Inboxes } from './api/inbox/inboxes.ts';
import { KeyRates } from './api/key-rates.ts';
import { Readiness } from './api/readiness.ts';
import { createServer } from './api/server.ts';
import { acceptingWith } from './api/traced-accept.ts';
import { AppMetrics } from './app-metrics.ts';
import { type ConfigWithKeys, readVersion, withListeningPort } from './config/index.ts';
import { createChallenger, createDeliverer, type EgressPolicy, isReservedHeader } from './deliver/index.ts';
import {
  Dispatcher,
  decodeWake,
  HandOn,
  Ownership,
  WAKE_CHANNEL,
  WakeSender,
  wantOfWake,
} from './dispatch/index.ts';
import { DatabaseClock, systemClock } from './domain/clock.ts';
import type { Endpoint } from './domain/endpoint.ts';
import { newId, publicId, type Uuid } from './domain/ids.ts';
import { type Accepted, Acceptor, readEvent } from './ingest/index.ts';
import { Drainer, outboxLag } from './outbox/index.ts';
import { type Database, DISPATCH_CONNECTIONS, inTransaction, openDatabase } from './postgres/database.ts';
import { createEndpointCache } from './postgres/endpoint-cache.ts';
import {
  announceTail,
  listenToTails,
  sendToTails,
  TAIL_INTEREST_CHANNEL,
} from './postgres/live-tail-channel.ts';
import { migrate } from './postgres/migrate.ts';
import { ensurePartitions } from './postgres/partitions.ts';
import { checkRoute } from './postgres/pooler.ts';
import { disableEndpoint } from './postgres/queries/endpoints.ts';
import { writePublishLimits } from './postgres/queries/outbox.ts';
import { readReadiness } from './postgres/queries/readiness.ts';
import { listRelaySources } from './postgres/queries/relay-sources.ts';
import { TASKS_CHANNEL } from './postgres/queries/tasks.ts';
import { TENANTS_CHANNEL } from './postgres/queries/tenants.ts';
import { createSecretBox } from './postgres/secret-box.ts';
import { decide, expiresAt, Settler, signalOf, TaskRunner } from './settle/index.ts';
import { logAttempt } from './telemetry/attempt-line.ts';
import { LiveTail } from './telemetry/live-tail/index.ts';
import type { Log } from './telemetry/log.ts';
import { processCounts, type Sample, toText } from './telemetry/metrics/index.ts';
import { recurringProblems } from './telemetry/recurring-problems.ts';
import { traceSending } from './telemetry/tracing.ts';
import { OperationalEvents, StatsKeeper, Upkeep } from './upkeep/index.ts';

export interface App {
  readonly url: string;
  /** An event as `POST /v1/events` takes it, of whichever tenant it says. */
  publish(body: Buffer): Promise<Accepted>;
  /** Of this process. */
  readMetrics(): Sample[];
  stop(): Promise<void>;
}

export type AppConfig = ConfigWithKeys & { readonly databaseUrl: string };

/** How long a request may wait for a database that does not answer. */
const ACCEPT_PATIENCE_MS = 10_000;
const HAND_OVER_MS = 1_000;
const TAIL_ANNOUNCE_MS = 5_000;
/** Whoever owns this shard is the one who reads the outbox often: there is always one, and soon another if it dies. */
const OUTBOX_SHARD = 0;
/** Limits of tenants are told to every process; this is only for when that message is lost. */
const TENANT_LIMITS_MS = 10_000;

export interface AppOptions {
  readonly config: AppConfig;
  readonly log: Log;
  /** False: others of this node answer its requests. */
  readonly listens?: boolean;
  /** Of all processes of this node, where there are several. Null: they cannot be asked just now. */
  readonly gatherMetrics?: () => Promise<Sample[] | null>;
  /** Where the other processes of this node are to be found, and our number among them. */
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

async function startOn(
  database: Database,
  { config, log, listens = true, gatherMetrics, siblings }: AppOptions,
): Promise<App> {
  const counted = config.metrics === 'on' ? new AppMetrics(config) : null;
  const report = recurringProblems(log, systemClock);
  const problem: typeof report = (what, error) => {
    counted?.problem();
    report(what, error);
  };
  const runsWorker = config.role !== 'api';
  const runsApi = config.role !== 'worker';

  const clock = new DatabaseClock(systemClock);
  const apiPool = database.pool('api');
  const lookupPool = database.pool('lookup');

  const upkeepPool = database.pool('upkeep');
  const applied = await migrate(upkeepPool);
  if (applied.length > 0) log.info({ applied }, 'migrated the database');
  const makePartitions = async (oldestMs?: number): Promise<void> => {
    const created = await ensurePartitions(upkeepPool, { days: config.partitionDays, oldestMs });
    if (created.length > 0) log.info({ partitions: created.length }, 'made partitions');
  };
  await makePartitions();
  await writePublishLimits(apiPool, config);

  const secretBox = createSecretBox(config.encryptionKey, config.previousEncryptionKeys);
  const endpoints = createEndpointCache(lookupPool, secretBox, (id, error) =>
    problem(`open the secrets of ${publicId('ep', id)}`, error),
  );
  const egress: EgressPolicy = {
    allow: config.egressAllow,
    deny: config.egressDeny,
    requireHttps: config.egressHttps !== 'optional',
    allowHttpToLoopback: config.egressHttps === 'except-loopback',
    allowedPorts: config.egressPorts.length === 0 ? 'any' : config.egressPorts,
  };
  await endpoints.refresh();

  // With port 0 only known once the server listens.
  let { publicUrl } = config;
  const deliverer = createDeliverer({
    egress,
    userAgent: `Posthorn/${readVersion()}`,
    get publicUrl() {
      return publicUrl;
    },
    connectTimeoutMs: config.connectTimeoutMs,
    responseCapBytes: config.responseCapBytes,
    proxyUrl: config.egressProxy,
    clock,
  });

  const workerName = `${hostname()}:${process.pid}`;
  const tracer =
    config.tracing === 'off'
      ? null
      : (await import('./telemetry/otel-tracer.ts')).createOtelTracer({
          endpoint: config.tracingEndpoint,
          sampleRate: config.tracingSampleRate,
          flushMs: config.tracingFlushMs,
          serviceName: config.tracingServiceName,
          version: readVersion(),
          instance: workerName,
          clock,
          problem,
        });
  const tail = new LiveTail({
    clock,
    name: newId(clock.now()),
    messagesPerSecond: config.streamMessagesPerSecond,
    announceMs: TAIL_ANNOUNCE_MS,
    send: (payloads) => sendToTails(database.pool('tail'), payloads),
    announce: (payload) => announceTail(database.pool('tail'), payload),
    listen: (heard, lost) => listenToTails(database.pool('tail'), heard, lost),
    problem,
  });
  const settler = new Settler({
    pool: database.pool('settle'),
    clock,
    batchRows: config.settleBatchRows,
    worker: () => ({ id: ownership.workerId, name: workerName }),
    failed: (error) => problem('record outcomes', error),
    tail,
    written: counted?.settleCommits.written,
  });

  const stats = new StatsKeeper({
    pool: apiPool,
    clock,
    everyMs: config.statsFlushMs,
    typesPerTenant: config.statsTypesPerTenant,
    problem,
  });

  const dispatcher = new Dispatcher({
    pool: database.pool('dispatch'),
    clock,
    endpoints,
    ownership: () => ownership,
    problem,
    stages: {
      send:
        tracer === null
          ? (request, done) => deliverer.send(request, done)
          : traceSending(tracer, (request, done) => deliverer.send(request, done)),
      decide: (outcome, delivery, policy) =>
        decide(outcome, delivery, policy, {
          now: clock.now(),
          random: Math.random,
          retryAfterCapMs: config.retryAfterCapMs,
        }),
      signalOf,
      expiresAt,
      settle: (settlement, health, done) => {
        counted?.attempts.settling(settlement.verdict);
        settler.settle(settlement, health, done);
      },
    },
    events: {
      answered: (lane, item, outcome, verdict, event) => {
        const { delivery } = item;
        counted?.attempts.answered(event.type, delivery, outcome, verdict);
        logAttempt(log, lane.endpoint, delivery, outcome, verdict);
      },
      circuitChanged: (lane) => {
        counted?.circuitChanged(lane.breaker.allowsTraffic);
        tail.circuitChanged(lane.endpoint, lane.breaker.record.circuit);
        log.info(
          { endpoint_id: publicId('ep', lane.id), circuit: lane.breaker.record.circuit },
          'circuit changed',
        );
      },
      gone: (endpoint, askedAt) => void disable(endpoint, askedAt),
    },
    maxSockets: config.maxSockets,
    retrySocketShare: config.retrySocketShare,
    laneItems: config.laneItems,
    budgetItems: config.laneBudgetItems,
    budgetBytes: config.laneBudgetBytes,
    unsettledCap: config.unsettledCap,
    sweepMs: config.sweepMs,
    retryAfterCapMs: config.retryAfterCapMs,
    carefulAfterCrashes: config.carefulAfterCrashes,
    carefulWindowMs: config.carefulWindowMs,
    handOverMs: HAND_OVER_MS,
    hasSiblings: siblings !== undefined,
  });

  async function disable(endpoint: Endpoint, askedAt: number): Promise<void> {
    try {
      const disabled = await inTransaction(apiPool, (client) =>
        disableEndpoint(client, endpoint.id, 'gone', { url: endpoint.url, at: askedAt }),
      );
      if (disabled) {
        counted?.endpointDisabled('gone');
        log.warn({ endpoint_id: publicId('ep', endpoint.id) }, 'endpoint answered 410 and was disabled');
      }
      await endpoints.refresh();
    } catch (error) {
      problem('disable an endpoint that is gone', error);
    }
  }

  const refreshEndpoints = (): void =>
    void endpoints.refresh().catch((error) => problem('read endpoints', error));
  let tenantLimitsAt = Number.NEGATIVE_INFINITY;
  const readTenants = (read: () => Promise<void>): void => {
    tenantLimitsAt = clock.monotonic();
    void read().catch((error) => problem('read the limits of tenants', error));
  };
  const ownership = new Ownership({
    pool: database.pool('control'),
    name: workerName,
    clock,
    heartbeatMs: config.heartbeatMs,
    proofMs: config.proofMs,
    deadAfterMs: config.deadAfterMs,
    crashWindowMs: config.carefulWindowMs,
    takesShards: runsWorker,
    channels: [
      WAKE_CHANNEL,
      'posthorn_shards',
      'posthorn_endpoints',
      'posthorn_keys',
      TASKS_CHANNEL,
      TENANTS_CHANNEL,
      TAIL_INTEREST_CHANNEL,
    ],
    events: {
      taken: (shards) => {
        log.debug({ shards: shards.length }, 'took shards');
        dispatcher.shardsTaken(shards);
        handOn.shardsChanged();
      },
      lost: (shards) => {
        log.warn({ shards: shards.length }, 'lost shards');
        handOn.shardsChanged();
        dispatcher.shardsLost(shards);
      },
      giveUp: (shards) => {
        handOn.shardsChanged();
        void dispatcher.handOver(shards, (given) => ownership.release(given));
      },
      renewed: ({ databaseNow, endpointVersion, lastSeq }) => {
        clock.heard(databaseNow);
        dispatcher.renewed(lastSeq);
        if (endpointVersion !== endpoints.version) refreshEndpoints();
        else counted?.endpointsConfirmed(clock.monotonic());
        if (clock.monotonic() - tenantLimitsAt > TENANT_LIMITS_MS)
          readTenants(() => acceptor.reloadTenantLimits());
      },
      notified: (channel, payload) => {
        if (channel === WAKE_CHANNEL)
          for (const id of decodeWake(payload)) dispatcher.wake(id, wantOfWake(payload));
        else if (channel === 'posthorn_shards') ownership.hurry();
        else if (channel === 'posthorn_endpoints') refreshEndpoints();
        else if (channel === TASKS_CHANNEL) tasks?.hurry();
        else if (channel === TENANTS_CHANNEL) readTenants(() => acceptor.tenantsChanged());
        else if (channel === TAIL_INTEREST_CHANNEL) tail.heardInterest(payload);
        else authenticator.forget();
      },
      connected: () => {
        authenticator.forget();
        dispatcher.sweepSoon();
        readTenants(() => acceptor.tenantsChanged());
      },
      problem,
      buried: (workers, shards) => log.warn({ workers, shards }, 'took over from workers that died'),
    },
  });
  endpoints.onChange((changed) => dispatcher.endpointsChanged(changed));
  endpoints.onChange((changed) => tail.endpointsChanged(changed));

  const wakeSender = new WakeSender(database.pool('notify'), (error) => problem('wake other workers', error));
  const handOn = new HandOn({
    dispatcher,
    endpoints,
    wakeSender,
    clock,
    siblings: siblings ?? null,
    ownedShards: () => ownership.lastingShards,
    problem,
  });
  const wake = (endpointId: Uuid): void => {
    dispatcher.wake(endpointId);
    wakeSender.wake(endpointId);
  };
  const tasks = runsWorker
    ? new TaskRunner({
        pool: apiPool,
        clock,
        runner: newId(clock.now()),
        silentMs: config.taskTakeoverMs,
        pollMs: Math.min(config.sweepMs, config.taskTakeoverMs),
        wake,
        problem,
      })
    : null;

  const acceptor = new Acceptor({
    pool: database.pool('ingest'),
    outboxPool: database.pool('outbox'),
    endpoints,
    clock,
    random: Math.random,
    batchRows: config.ingestBatchRows,
    batchBytes: config.ingestBatchBytes,
    queueEvents: config.acceptQueueEvents,
    queueBytes: config.acceptQueueBytes,
    idempotencyTtlMs: config.idempotencyTtlMs,
    tenantPerSecond: config.tenantIngestPerSecond,
    tenantBurst: config.tenantIngestBurst,
    patienceMs: ACCEPT_PATIENCE_MS,
    committed: (deliveries, commit) => handOn.committed(deliveries, commit),
    missingPartition: makePartitions,
    events: counted?.accepts,
    tail,
    written: counted?.acceptCommits.written,
    watcherFailed: (error) => problem('tell of what was accepted', error),
    tracer,
  });

  const drainer = new Drainer({
    pool: database.pool('outbox'),
    clock,
    leads: () => ownership.owns(OUTBOX_SHARD),
    pollMs: config.outboxPollMs,
    standInMs: config.outboxStandInMs,
    batchRows: config.ingestBatchRows,
    batchBytes: config.ingestBatchBytes,
    accept: (events) => acceptor.acceptPromised(events),
    rejected: (id, reason) =>
      log.error({ event_id: publicId('evt', id), reason }, 'a published event was rejected'),
    problem,
  });

  const authenticator = new Authenticator(
    lookupPool,
    clock,
    config.adminKey,
    new KeyRates(config.keyRequestsPerSecond, config.keyRequestsBurst, clock),
  );
  const upkeep = new Upkeep({
    pool: upkeepPool,
    clock,
    everyMs: config.upkeepMs,
    auditRetentionMs: config.auditRetentionMs,
    makePartitions,
    autoDisable: {
      deadRate: config.autoDisableDeadRate,
      minDeliveries: config.autoDisableMinDeliveries,
      failingMs: config.autoDisableFailingMs,
    },
    disabled: (disabled) => {
      for (const { id, reason } of disabled) {
        counted?.endpointDisabled(reason);
        log.warn({ endpoint_id: publicId('ep', id), reason }, 'endpoint was disabled');
      }
      refreshEndpoints();
    },
    problem,
  });

  const operationalEvents = new OperationalEvents({
    pool: apiPool,
    clock,
    endpoints,
    everyMs: config.operationalEventsMs,
    levelsEveryMs: config.operationalLevelsMs,
    operatorTenant: config.operatorTenant,
    deadWindowMs: config.deadEventWindowMs,
    deadLettersThreshold: config.deadLettersThreshold,
    queueAgeThresholdMs: config.queueAgeThresholdMs,
    get publicUrl() {
      return publicUrl;
    },
    problem,
  });

  const readMetrics = (): Sample[] => counted?.metrics.read() ?? [];

  const readiness = new Readiness({
    clock,
    read: () => readReadiness(lookupPool, config.deadAfterMs),
    takeOverMs: config.deadAfterMs,
    needsWorkers: config.readyNeedsWorkers,
  });
  let isLeaving = false;
  async function notReady(): Promise<string | null> {
    if (isLeaving) return 'This server is stopping.';
    const missing = await readiness.missing();
    if (missing !== null) return missing;
    if (runsWorker && ownership.silentMs > config.deadAfterMs)
      return 'This worker could not prove of late that it owns its shards.';
    return null;
  }

  const server = await createServer(
    {
      pool: apiPool,
      clock,
      log,
      authenticator,
      acceptor,
      endpoints,
      secretBox,
      egress,
      inboxes: config.inbox ? new Inboxes(clock) : null,
      challenges: new EndpointChallenges({
        challenger: createChallenger({
          deliverer,
          clock,
          timeoutMs: config.challengeTimeoutMs,
          get publicUrl() {
            return publicUrl;
          },
        }),
        atOnce: config.challengesAtOnce,
        required: config.requireChallenge,
      }),
      get publicUrl() {
        return publicUrl;
      },
      limits: {
        maxEventBytes: config.maxEventBytes,
        maxNesting: config.maxNesting,
        maxBatchBytes: config.maxBatchBytes,
      },
      signatureOverlapMs: config.signatureOverlapMs,
      discardUndoMs: config.discardUndoMs,
      isTrustedProxy: trustProxies(config.trustedProxies),
      statsCacheMs: config.statsCacheMs,
      idempotency: { ttlMs: config.idempotencyTtlMs, claimMs: config.idempotencyClaimMs },
      tail,
      stream: {
        clients: config.streamClients,
        clientsPerKey: config.streamClientsPerKey,
        bufferBytes: config.streamBufferBytes,
        heartbeatMs: config.streamHeartbeatMs,
      },
      wake,
      tracer,
      metrics: counted && {
        rejected: (code) => counted.accepts.rejected(code),
        text: async () => toText((await gatherMetrics?.()) ?? [...readMetrics(), ...processCounts(1, 1)]),
      },
      notReady,
      outboxLag: () => outboxLag(apiPool),
      relaySources: () => listRelaySources(apiPool),
    },
    {
      requestTimeoutMs: config.requestTimeoutMs,
      closeWithinMs: config.drainMs / 4,
      isLeaving: () => isLeaving,
      healthOnly: !runsApi,
    },
  );

  /** Unready, but still serving: by the time that it closes, balancers send nothing here any more. */
  const leave = async (): Promise<void> => {
    isLeaving = true;
    if (listens && config.lameDuckMs > 0)
      await new Promise<void>((resolve) => clock.after(config.lameDuckMs, resolve));
  };

  const closeAll = async (): Promise<void> => {
    // In the order in which work flows: nothing new, finish what was accepted, hand over the rest, write it all down.
    await Promise.all([server.close(), drainer.stop()]);
    await acceptor.drained();
    await Promise.all([upkeep.stop(), operationalEvents.stop(), tasks?.stop(), counted?.stop()]);
    const held = await ownership.beginStop();
    handOn.shardsChanged();
    await dispatcher.handOver(held, (given) => ownership.release(given), config.drainMs / 2);
    await dispatcher.stop();
    await Promise.race([
      settler.drained(),
      new Promise<void>((resolve) => clock.after(config.drainMs / 4, resolve)),
    ]);
    handOn.stop();
    await Promise.all([wakeSender.idle(), stats.stop(), tail.stop()]);
    await ownership.stop();
    await deliverer.close();
    await Promise.all([database.close(), tracer?.stop()]);
  };

  try {
    await acceptor.reloadTenantLimits();
    await ownership.start();
    await handOn.start();
    if (runsWorker) dispatcher.start();
    tasks?.start();
    drainer.start();
    stats.start();
    upkeep.start();
    operationalEvents.start();
    counted?.start({
      clock,
      database,
      dispatcher,
      handOn,
      ownership,
      endpoints,
      deliverer,
      acceptor,
      problem,
    });
    const url = listens ? await server.listen({ port: config.port, host: config.host }) : config.publicUrl;
    if (listens) publicUrl = withListeningPort(config, Number(new URL(url).port)).publicUrl;
    const accept = acceptingWith(tracer, acceptor);
    let stopping: Promise<void> | null = null;
    return {
      url,
      publish: async (body) =>
        accept(readEvent(body, config, { keyTenant: null, idempotencyKey: null, isReservedHeader })),
      readMetrics,
      stop: () => {
        stopping ??= leave().then(closeAll);
        return stopping;
      },
    };
  } catch (error) {
    await closeAll().catch(() => {});
    throw error;
  }
}
