/** Composes the HTTP API from the configuration and the parts of the process. */
import { createApi, createMetricsApi } from './api/create-api.ts';
import type { ApiDependencies, PublishingDependencies } from './api/dependencies.ts';
import { Authenticator } from './api/http/authenticator.ts';
import { type IsTrustedProxy, trustProxies } from './api/http/client-address.ts';
import { KeyRates } from './api/http/key-rates.ts';
import { UncheckedKeys } from './api/http/unchecked-keys.ts';
import { IdentityProvider } from './api/sign-in/identity-provider.ts';
import type { SignInDependencies } from './api/sign-in/routes.ts';
import { SESSION_PREFIX, Sessions } from './api/sign-in/sessions.ts';
import type { AppMetrics } from './app-metrics.ts';
import { type ConfigWithKeys, retentionOf } from './config/index.ts';
import { connectionLimit, readDescriptorLimit } from './connection-limit.ts';
import type { ConvertStage } from './create-conversions.ts';
import type { Engine } from './create-engine.ts';
import type { EventLogParts } from './create-event-log.ts';
import { kafkaTopicsOf, recordLifetimeReader } from './create-kafka-source.ts';
import { createChallenger, type Deliverer, type EgressPolicy } from './deliver/index.ts';
import type { Clock } from './domain/clock.ts';
import type { Confirmations } from './manage/confirmations.ts';
import { type ControlPlane, createControlPlane } from './manage/control-plane.ts';
import { Inboxes } from './manage/inboxes.ts';
import { reportStorage } from './manage/storage.ts';
import type { Store } from './open-store.ts';
import type { Notifier } from './ports/notifier.ts';
import type { RateBuckets } from './ports/rate-limits.ts';
import { listRegions } from './postgres/queries/regions.ts';
import { listRelaySources } from './postgres/queries/relay-sources.ts';
import type { LiveTail } from './telemetry/live-tail/index.ts';
import type { Log } from './telemetry/log.ts';
import { processCounts, type Sample, toPrometheusText } from './telemetry/metrics/index.ts';

export interface ServerParts {
  readonly config: ConfigWithKeys;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly engine: Engine;
  readonly acceptor: PublishingDependencies['acceptor'];
  readonly notifier: Notifier;
  readonly rateBuckets: RateBuckets;
  readonly deliverer: Deliverer;
  readonly confirmations: Confirmations;
  readonly unstoredEvents: EventLogParts['unstoredEvents'];
  readonly convertStage: ConvertStage;
  readonly egress: EgressPolicy;
  readonly tail: LiveTail;
  readonly metrics: AppMetrics | null;
  /** Metrics of all processes of this node. Null if they cannot be asked now. */
  readonly gatherMetrics: (() => Promise<Sample[] | null>) | undefined;
  /** Changes when the server listens on a port that the system chose. */
  readonly address: { readonly publicUrl: string };
  /** True once the process is stopping: it still answers, but is no longer ready. */
  readonly isStopping: () => boolean;
  /** Returns why the process is not ready. Null: it is ready. */
  readonly findMissing: () => Promise<string | null>;
}

export interface Servers {
  readonly server: Awaited<ReturnType<typeof createApi>>;
  /** Null: `server` answers `/metrics` too. */
  readonly metricsServer: Awaited<ReturnType<typeof createApi>> | null;
}

export async function createServers(options: ServerParts): Promise<Servers> {
  const { config, isStopping } = options;
  const dependencies = apiDependencies(options);
  const descriptors = readDescriptorLimit();
  const limits = {
    requestTimeoutMs: config.requestTimeoutMs,
    answerTimeoutMs: config.answerTimeoutMs,
    closeWithinMs: config.drainMs / 4,
    isStopping,
    maxConnections: descriptors === null ? null : connectionLimit(descriptors, config),
  };
  const hasOwnAddress = config.metricsAddr !== null;
  return {
    server: await createApi(dependencies, {
      ...limits,
      healthOnly: config.role === 'worker',
      metricsElsewhere: hasOwnAddress,
    }),
    metricsServer: hasOwnAddress
      ? await createMetricsApi(dependencies, { ...limits, maxConnections: METRICS_CONNECTIONS })
      : null,
  };
}

const METRICS_CONNECTIONS = 20;

function apiDependencies(options: ServerParts): ApiDependencies {
  const { config, store, clock, metrics, address } = options;
  const pool = store.database.pool('api');
  const isTrustedProxy = trustProxies(config.trustedProxies);
  const signIn = createSignIn(options);
  const authenticator = createAuthenticator(options, isTrustedProxy, signIn?.sessions ?? null);
  return {
    pool,
    clock,
    log: options.log,
    endpoints: store.endpoints,
    manage: composeControlPlane(options, authenticator),
    conversions: options.convertStage.converter,
    catalogue: store.catalogue,
    access: {
      authenticator,
      isTrustedProxy,
      signIn,
      metricsAccess: config.metricsAccess,
    },
    publishing: {
      acceptor: options.acceptor,
      limits: {
        maxEventBytes: config.maxEventBytes,
        maxNesting: config.maxNesting,
        maxBatchBytes: config.maxBatchBytes,
      },
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
        clientsPerTenant: config.streamClientsPerTenant,
        bufferBytes: config.streamBufferBytes,
        heartbeatMs: config.streamHeartbeatMs,
      },
    },
    readStorage: () =>
      reportStorage(pool, { clock, days: retentionOf(config), partitionDays: config.partitionDays }),
    kafkaTopics: kafkaTopicsOf(config),
    unstoredEvents: options.unstoredEvents,
    statsCacheMs: config.statsCacheMs,
    statsMinutesMs: config.statsMinutesMs,
    portalOrigins: config.portalOrigins,
    inboxes: config.inbox ? new Inboxes(pool, clock) : null,
    get publicUrl() {
      return address.publicUrl;
    },
    metrics: metrics && {
      onRejected: (code) => metrics.accepts.onRejected(code),
      onUnreadClosed: (count) => metrics.accepts.onUnreadClosed(count),
      text: async () =>
        toPrometheusText(
          (await options.gatherMetrics?.()) ?? [...metrics.metrics.read(), ...processCounts(1, 1)],
        ),
    },
    health: {
      findMissing: options.findMissing,
      outboxLag: () => store.outbox.readLag(),
      relaySources: () => listRelaySources(pool),
      regions: () => listRegions(pool, config.deadAfterMs),
    },
  };
}

function composeControlPlane(
  { config, store, clock, log, engine, egress, deliverer, confirmations, address }: ServerParts,
  authenticator: Authenticator,
): ControlPlane {
  return createControlPlane({
    pool: store.database.pool('api'),
    clock,
    endpoints: store.endpoints,
    secretBox: store.secretBox,
    keyFormat: store.keyFormat,
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
      tokenHosts: config.tokenHosts,
    },
    maxTasksPerTenant: config.maxTasksPerTenant,
    leaseMs: config.proofMs,
    endpointLimits: {
      perTenant: config.maxEndpointsPerTenant,
      patternsPerTenant: config.maxPatternsPerTenant,
      unique: config.uniqueEndpoints,
    },
    notifiers: {
      confirmations,
      hasMail: config.smtpUrl !== null,
      chatHosts: config.notifierHosts,
      requiresChallenge: config.requireChallenge,
    },
    operatorTenant: config.operatorTenant,
    signatureOverlapMs: config.signatureOverlapMs,
    discardUndoMs: config.discardUndoMs,
    retentionDays: config.retentionEventsDays,
    hasArchive: config.archiveUrl !== null,
    readKafkaLifetime: recordLifetimeReader(config),
    onKafkaProblem: (error) => log.warn({ err: error }, 'cannot read how long Kafka keeps records'),
    wake: (endpointId) => engine.router.wake(endpointId),
    onKeyChanged: () => authenticator.clear(),
    // The change is committed. If this fails, the regular refresh reports it.
    onCatalogueChanged: () => store.catalogue.refresh().catch(() => {}),
    wakeProbe: () => engine.router.requestProbe(),
  });
}

function createAuthenticator(
  { config, store, clock, notifier, rateBuckets }: ServerParts,
  isTrustedProxy: IsTrustedProxy,
  sessions: Sessions | null,
): Authenticator {
  const rates = new KeyRates(config.keyRequestsPerSecond, config.keyRequestsBurst, rateBuckets);
  const pool = store.database.pool('lookup');
  const uncheckedKeys = new UncheckedKeys(pool, clock);
  const authenticator = new Authenticator(pool, clock, config.adminKey, {
    rates,
    guesses: { keyFormat: store.keyFormat, uncheckedKeys },
    isTrustedProxy,
    operatorTenant: config.operatorTenant,
    sessions,
    staleMs: config.backbone === 'kafka' ? config.acceptWithoutDatabaseMs : 0,
  });
  notifier.subscribe('keys', () => authenticator.clear());
  notifier.onReconnected(() => authenticator.clear());
  store.endpoints.onReplaced(() => {
    uncheckedKeys.clear();
    authenticator.clear();
  });
  return authenticator;
}

/** Signing in to the console with OpenID Connect. Null: it is switched off. */
function createSignIn({ config, store, clock, address }: ServerParts): SignInDependencies | null {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcTenantClaim: tenantClaim } = config;
  if (issuer === null || clientId === null) return null;
  const isSecure = () => address.publicUrl.startsWith('https:');
  return {
    provider: new IdentityProvider({
      issuer,
      clientId,
      clientSecret: config.oidcClientSecret,
      scope: config.oidcScope,
      neededClaims: [config.oidcRolesClaim, 'email', ...(tenantClaim === null ? [] : [tenantClaim])],
    }),
    sessions: new Sessions({
      pool: store.database.pool('lookup'),
      clock,
      tokenFormat: store.keyFormat.withPrefix(SESSION_PREFIX),
      lifetimeMs: config.sessionMs,
      isSecure,
    }),
    rules: {
      rolesClaim: config.oidcRolesClaim,
      tenantClaim,
      adminRoles: config.oidcAdminRoles,
      tenantRoles: config.oidcTenantRoles,
      readRoles: config.oidcReadRoles,
      operatorTenant: config.operatorTenant,
    },
    secretBox: store.secretBox,
    isSecure,
  };
}
