/** Composes the HTTP API from the configuration and the parts of the process. */
import { createApi } from './api/create-api.ts';
import { Readiness } from './api/health/readiness.ts';
import { Authenticator } from './api/http/authenticator.ts';
import { type IsTrustedProxy, trustProxies } from './api/http/client-address.ts';
import { KeyRates } from './api/http/key-rates.ts';
import { Inboxes } from './api/inbox/inboxes.ts';
import type { AppMetrics } from './app-metrics.ts';
import { type ConfigWithKeys, retentionOf } from './config/index.ts';
import { connectionLimit, readDescriptorLimit } from './connection-limit.ts';
import type { Engine } from './create-engine.ts';
import type { Ingest } from './create-ingest.ts';
import { createChallenger, type Deliverer, type EgressPolicy } from './deliver/index.ts';
import type { Clock } from './domain/clock.ts';
import { type ControlPlane, createControlPlane } from './manage/control-plane.ts';
import { reportStorage } from './manage/storage.ts';
import type { Store } from './open-store.ts';
import type { Notifier } from './ports/notifier.ts';
import { readReadiness } from './postgres/queries/readiness.ts';
import { listRelaySources } from './postgres/queries/relay-sources.ts';
import type { LiveTail } from './telemetry/live-tail/index.ts';
import type { Log } from './telemetry/log.ts';
import { processCounts, type Sample, toText } from './telemetry/metrics/index.ts';
import type { Tracer } from './telemetry/tracing.ts';

export interface ServerOptions {
  readonly config: ConfigWithKeys;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: Engine;
  readonly ingest: Ingest;
  readonly notifier: Notifier;
  readonly deliverer: Deliverer;
  readonly egress: EgressPolicy;
  readonly tail: LiveTail;
  readonly tracer: Tracer | null;
  readonly metrics: AppMetrics | null;
  /** Metrics of all processes of this node. Null if they cannot be asked now. */
  readonly gatherMetrics: (() => Promise<Sample[] | null>) | undefined;
  /** Changes when the server listens on a port that the system chose. */
  readonly address: { readonly publicUrl: string };
  /** True once the process is stopping: it still answers, but is no longer ready. */
  readonly isLeaving: () => boolean;
}

export function createServer(options: ServerOptions): ReturnType<typeof createApi> {
  const { config, store, clock, metrics, address } = options;
  const pool = store.database.pool('api');
  const isTrustedProxy = trustProxies(config.trustedProxies);
  const authenticator = createAuthenticator(options, isTrustedProxy);
  const descriptors = readDescriptorLimit();
  return createApi(
    {
      pool,
      clock,
      log: options.log,
      endpoints: store.endpoints,
      manage: composeControlPlane(options, authenticator),
      access: { authenticator, isTrustedProxy },
      publishing: {
        acceptor: options.ingest.acceptor,
        limits: {
          maxEventBytes: config.maxEventBytes,
          maxNesting: config.maxNesting,
          maxBatchBytes: config.maxBatchBytes,
        },
        tracer: options.tracer,
      },
      idempotency: {
        ttlMs: config.idempotencyTtlMs,
        claimMs: config.idempotencyClaimMs,
        secretBox: store.secretBox,
      },
      liveTail: {
        tail: options.tail,
        limits: {
          clients: config.streamClients,
          clientsPerKey: config.streamClientsPerKey,
          bufferBytes: config.streamBufferBytes,
          heartbeatMs: config.streamHeartbeatMs,
        },
      },
      readStorage: () =>
        reportStorage(pool, { clock, days: retentionOf(config), partitionDays: config.partitionDays }),
      statsCacheMs: config.statsCacheMs,
      inboxes: config.inbox ? new Inboxes(pool, clock) : null,
      get publicUrl() {
        return address.publicUrl;
      },
      metrics: metrics && {
        rejected: (code) => metrics.accepts.rejected(code),
        text: async () =>
          toText((await options.gatherMetrics?.()) ?? [...metrics.metrics.read(), ...processCounts(1, 1)]),
      },
      health: {
        notReady: createReadinessCheck(options),
        outboxLag: () => store.outbox.readLag(),
        relaySources: () => listRelaySources(pool),
      },
    },
    {
      requestTimeoutMs: config.requestTimeoutMs,
      closeWithinMs: config.drainMs / 4,
      isLeaving: options.isLeaving,
      maxConnections: descriptors === null ? null : connectionLimit(descriptors, config),
      healthOnly: config.role === 'worker',
    },
  );
}

function composeControlPlane(
  { config, store, clock, engine, egress, deliverer, address }: ServerOptions,
  authenticator: Authenticator,
): ControlPlane {
  return createControlPlane({
    pool: store.database.pool('api'),
    clock,
    endpoints: store.endpoints,
    secretBox: store.secretBox,
    egress,
    challenges: {
      challenger: createChallenger({
        deliverer,
        clock,
        timeoutMs: config.challengeTimeoutMs,
        get publicUrl() {
          return address.publicUrl;
        },
      }),
      maxConcurrent: config.challengesAtOnce,
      isRequired: config.requireChallenge,
    },
    endpointLimits: { perTenant: config.maxEndpointsPerTenant, unique: config.uniqueEndpoints },
    operatorTenant: config.operatorTenant,
    signatureOverlapMs: config.signatureOverlapMs,
    discardUndoMs: config.discardUndoMs,
    retentionDays: config.retentionEventsDays,
    wake: (endpointId) => engine.router.wake(endpointId),
    onKeyChanged: () => authenticator.forget(),
    wakeProbe: () => engine.router.requestProbe(),
  });
}

function createAuthenticator(
  { config, store, clock, notifier }: ServerOptions,
  isTrustedProxy: IsTrustedProxy,
): Authenticator {
  const rates = new KeyRates(config.keyRequestsPerSecond, config.keyRequestsBurst, clock);
  const authenticator = new Authenticator(store.database.pool('lookup'), clock, config.adminKey, {
    rates,
    isTrustedProxy,
    operatorTenant: config.operatorTenant,
  });
  notifier.subscribe('keys', () => authenticator.forget());
  notifier.onReconnected(() => authenticator.forget());
  store.endpoints.onReplaced(() => authenticator.forget());
  return authenticator;
}

/** Returns a function that says why the process is not ready. Null: it is ready. */
function createReadinessCheck(options: ServerOptions): () => Promise<string | null> {
  const { config, store, clock, engine, isLeaving } = options;
  const readiness = new Readiness({
    clock,
    read: () => readReadiness(store.database.pool('lookup'), config.deadAfterMs),
    takeOverMs: config.deadAfterMs,
    needsWorkers: config.readyNeedsWorkers,
  });
  return async () => {
    if (isLeaving()) return 'This server is stopping.';
    const missing = await readiness.missing();
    if (missing !== null) return missing;
    if (config.role !== 'api' && engine.ownership.msSinceRenewal > config.deadAfterMs)
      return 'This worker could not renew the lease on its shards.';
    return null;
  };
}
