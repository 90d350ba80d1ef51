/** Composes the HTTP API from the configuration and the parts of the process. */
import { Authenticator } from './api/auth.ts';
import { trustProxies } from './api/client-address.ts';
import { EndpointChallenges } from './api/endpoint-challenge.ts';
import { Inboxes } from './api/inbox/inboxes.ts';
import { KeyRates } from './api/key-rates.ts';
import { createServer as createApiServer } from './api/server.ts';
import type { AppMetrics } from './app-metrics.ts';
import type { ConfigWithKeys } from './config/index.ts';
import type { Engine } from './create-engine.ts';
import type { Ingest } from './create-ingest.ts';
import { createChallenger, type Deliverer, type EgressPolicy } from './deliver/index.ts';
import type { Clock } from './domain/clock.ts';
import type { Store } from './open-store.ts';
import type { Notifier } from './ports/notifier.ts';
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
}

export function createServer(options: ServerOptions): ReturnType<typeof createApiServer> {
  const { config, store, clock, engine, metrics, address } = options;
  const pool = store.database.pool('api');
  return createApiServer(
    {
      pool,
      clock,
      log: options.log,
      authenticator: createAuthenticator(options),
      acceptor: options.ingest.acceptor,
      endpoints: store.endpoints,
      secretBox: store.secretBox,
      egress: options.egress,
      inboxes: config.inbox ? new Inboxes(clock) : null,
      challenges: createChallenges(options),
      get publicUrl() {
        return address.publicUrl;
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
      tail: options.tail,
      stream: {
        clients: config.streamClients,
        clientsPerKey: config.streamClientsPerKey,
        bufferBytes: config.streamBufferBytes,
        heartbeatMs: config.streamHeartbeatMs,
      },
      wake: (endpointId) => engine.router.wake(endpointId),
      tracer: options.tracer,
      metrics: metrics && {
        rejected: (code) => metrics.accepts.rejected(code),
        text: async () =>
          toText((await options.gatherMetrics?.()) ?? [...metrics.metrics.read(), ...processCounts(1, 1)]),
      },
      notReady: () => findObstacle(options),
      outboxLag: () => store.outbox.readLag(),
      relaySources: () => listRelaySources(pool),
    },
    {
      requestTimeoutMs: config.requestTimeoutMs,
      closeWithinMs: config.drainMs / 4,
      healthOnly: config.role === 'worker',
    },
  );
}

function createAuthenticator({ config, store, clock, notifier }: ServerOptions): Authenticator {
  const rates = new KeyRates(config.keyRequestsPerSecond, config.keyRequestsBurst, clock);
  const authenticator = new Authenticator(store.database.pool('lookup'), clock, config.adminKey, rates);
  notifier.subscribe('keys', () => authenticator.forget());
  notifier.onReconnected(() => authenticator.forget());
  return authenticator;
}

function createChallenges({ config, deliverer, clock, address }: ServerOptions): EndpointChallenges {
  const challenger = createChallenger({
    deliverer,
    clock,
    timeoutMs: config.challengeTimeoutMs,
    get publicUrl() {
      return address.publicUrl;
    },
  });
  return new EndpointChallenges({
    challenger,
    atOnce: config.challengesAtOnce,
    required: config.requireChallenge,
  });
}

/** What keeps this process from working. Null: it is ready. */
async function findObstacle({ config, store, engine }: ServerOptions): Promise<string | null> {
  try {
    await store.database.pool('lookup').query('select 1');
  } catch {
    return 'The database does not answer.';
  }
  if (config.role !== 'api' && engine.ownership.msSinceRenewal > config.deadAfterMs)
    return 'This worker could not renew the lease on its shards.';
  return null;
}
