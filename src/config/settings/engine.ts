import { bytes, duration, integer, number } from '../kinds.ts';
import { DAY, GIB, HOUR, KIB, MIB, MINUTE, SECOND } from './units.ts';

export const accepting = {
  maxEventBytes: bytes({
    default: 256 * KIB,
    min: KIB,
    max: 64 * MIB,
    about: 'Maximum size of the `data` of one event. A larger one gets 413.',
  }),
  maxBatchBytes: bytes({
    default: 10 * MIB,
    min: KIB,
    max: 256 * MIB,
    about: 'Maximum body size of a batch request.',
  }),
  maxNesting: integer({
    internal: true,
    default: 64,
    min: 1,
    max: 1000,
    about: 'Maximum nesting depth of `data`.',
  }),
  acceptQueueEvents: integer({
    internal: true,
    default: 20_000,
    min: 1,
    max: 10_000_000,
    about:
      'Maximum number of events that wait for their commit in one process. Further requests get 503. A tenant may fill half of it.',
  }),
  acceptQueueBytes: bytes({
    internal: true,
    default: 64 * MIB,
    min: KIB,
    max: 16 * GIB,
    about: 'Maximum number of bytes that wait for their commit in one process.',
  }),
  shedLoopDelayMs: duration({
    internal: true,
    default: 250,
    min: 0,
    max: MINUTE,
    about:
      'While timers of the process, or of a process of its node that delivers, fire later than this, a part of the published events gets 503. 0: never.',
  }),
  shedCommitMs: duration({
    internal: true,
    default: 1.5 * SECOND,
    min: 0,
    max: MINUTE,
    about:
      'While commits of accepted events or of results take longer than this, a part of the published events gets 503. 0: never.',
  }),
  ingestBatchRows: integer({
    internal: true,
    default: 500,
    min: 1,
    max: 10_000,
    about: 'Maximum number of events per commit.',
  }),
  ingestBatchBytes: bytes({
    internal: true,
    default: 4 * MIB,
    min: KIB,
    max: 256 * MIB,
    about: 'Maximum number of bytes per commit. A larger event is written alone.',
  }),
  outboxPollMs: duration({
    internal: true,
    default: 20,
    min: 1,
    max: MINUTE,
    about:
      'Polling interval of the outbox, in the process that drains it. Up to a hundred times as long while no rows are published.',
  }),
  outboxStandInMs: duration({
    internal: true,
    default: SECOND,
    min: 10,
    max: HOUR,
    about: 'Age of an outbox row from which the other processes drain it too.',
  }),
  tenantIngestPerSecond: number({
    default: 0,
    min: 0,
    max: 1_000_000,
    about:
      'Rate limit in events per second and tenant. Each process counts for itself, unless POSTHORN_REDIS_URL is set. Events beyond it get 429. 0 disables the limit.',
  }),
  tenantIngestBurst: integer({
    default: 1000,
    min: 1,
    max: 10_000_000,
    about: 'Burst of the rate limit per tenant. A batch larger than this is always refused.',
  }),
  tenantUnwrittenDeliveries: integer({
    default: 500_000,
    min: 1_000,
    max: 100_000_000,
    about:
      'How many deliveries of large fan-outs (more than 1,000 endpoints) a tenant may have that are accepted and not written yet. At the limit, its next large fan-out gets 429, and its rows in the outbox wait.',
  }),
  maxTasksPerTenant: integer({
    default: 100,
    min: 1,
    max: 10_000,
    about:
      'How many bulk tasks (replay, discard) of a tenant may be queued or running. At the limit, the next one gets 429.',
  }),
  idempotencyTtlMs: duration({
    default: 24 * HOUR,
    min: SECOND,
    max: 90 * DAY,
    about: 'How long idempotency keys are remembered.',
  }),
  idempotencyClaimMs: duration({
    internal: true,
    default: 2 * MINUTE,
    min: 100,
    max: HOUR,
    about:
      'A request with an idempotency key that has not finished after this time (its process died) may run again. Must be longer than any request takes.',
  }),
};

export const ownership = {
  heartbeatMs: duration({
    internal: true,
    default: 300,
    min: 10,
    max: MINUTE,
    about: 'How often a worker renews its lease. Must be less than half of the lease.',
  }),
  proofMs: duration({
    internal: true,
    default: SECOND,
    min: 50,
    max: 5 * MINUTE,
    about: "Duration of a worker's lease. A worker whose lease has expired starts no attempt.",
  }),
  deadAfterMs: duration({
    internal: true,
    default: 8 * SECOND,
    min: 100,
    max: HOUR,
    about:
      'A worker that holds its session lock but has not renewed its lease for this long (paused, cut off) loses its shards.',
  }),
  carefulAfterCrashes: integer({
    internal: true,
    default: 3,
    min: 1,
    max: 100,
    about:
      'Number of worker crashes on one shard, within POSTHORN_CAREFUL_WINDOW_MS, after which Posthorn records the start of each of its deliveries before it sends.',
  }),
  carefulWindowMs: duration({
    internal: true,
    default: 10 * MINUTE,
    min: SECOND,
    max: DAY,
    about:
      'Time within which the crashes for POSTHORN_CAREFUL_AFTER_CRASHES are counted, and for which the shard stays careful.',
  }),
};

export const dispatching = {
  maxSockets: integer({
    default: 2000,
    min: 1,
    max: 100_000,
    about: 'Maximum number of requests in flight per process.',
  }),
  retrySocketShare: number({
    internal: true,
    default: 0.4,
    min: 0.01,
    max: 0.99,
    about:
      'Maximum share of POSTHORN_MAX_SOCKETS that retries may use, so that they never delay fresh deliveries.',
  }),
  laneItems: integer({
    internal: true,
    default: 200,
    min: 1,
    max: 100_000,
    about:
      'Maximum number of deliveries in memory per endpoint. The rest waits in PostgreSQL. An endpoint with batches may hold up to ten times as many, or two batches.',
  }),
  laneBudgetItems: integer({
    internal: true,
    default: 50_000,
    min: 1,
    max: 10_000_000,
    about: 'Maximum number of deliveries in memory per process.',
  }),
  laneBudgetBytes: bytes({
    internal: true,
    default: 64 * MIB,
    min: KIB,
    max: 16 * GIB,
    about: 'Maximum number of payload bytes in memory per process.',
  }),
  unsettledCap: integer({
    internal: true,
    default: 2000,
    min: 1,
    max: 1_000_000,
    about:
      'Sending pauses at this many results that are not recorded yet. Up to as many more may wait because another transaction keeps their rows locked. So if the process dies, at most twice as many deliveries are sent twice.',
  }),
  settleLingerMs: duration({
    internal: true,
    default: 20,
    min: 0,
    max: SECOND,
    about:
      'How long the record of a success waits for others, so that they share a commit. A delivery whose record waits is sent again if the process dies.',
  }),
  settleBatchRows: integer({
    internal: true,
    default: 500,
    min: 1,
    max: 10_000,
    about: 'Maximum number of results per commit.',
  }),
  sweepMs: duration({
    internal: true,
    default: 5 * SECOND,
    min: 10,
    max: HOUR,
    about: 'Interval of sweeps, which find deliveries whose notification was lost.',
  }),
  retryAfterCapMs: duration({
    default: 24 * HOUR,
    min: 0,
    max: 30 * DAY,
    about: 'Longest `Retry-After` of a receiver that is honoured.',
  }),
  taskTakeoverMs: duration({
    internal: true,
    default: 10 * SECOND,
    min: 100,
    max: HOUR,
    about: 'Another process takes over a bulk task whose process has been silent for this long.',
  }),
  discardUndoMs: duration({
    default: 10 * SECOND,
    min: 0,
    max: DAY,
    about: 'How long a discarded dead letter can be restored.',
  }),
};
