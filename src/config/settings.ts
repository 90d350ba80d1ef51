/**
 * Every setting there is. One entry here is all it takes to add one: the type of `Config`, the environment variable,
 * the flag, the check at start, the line in the start log and the row in docs/configuration.md all follow from it.
 *
 * The variable of `leaseMs` is POSTHORN_LEASE_MS and its flag --lease-ms, unless the entry says otherwise.
 * Names carry their unit. Conditions between two settings are in checks.ts.
 */
import {
  boolean,
  bytes,
  choice,
  cidrs,
  duration,
  integer,
  integers,
  key32,
  key32List,
  number,
  text,
  url,
} from './kinds.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

const server = {
  port: integer({
    env: 'PORT',
    default: 8787,
    min: 0,
    max: 65_535,
    about: 'Port of the API and the console. 0 takes any free one.',
  }),
  host: text({
    env: 'HOST',
    default: '127.0.0.1',
    about: 'Address to listen on. 0.0.0.0 is every interface.',
  }),
  publicUrl: url({
    default: null,
    schemes: ['http', 'https'],
    about: 'Base of the links in thin payloads, the portal and the CLI. Not set: http://HOST:PORT.',
  }),
  trustedProxies: cidrs({
    default: [],
    about:
      'Proxies in front of the API whose `X-Forwarded-For` is believed, for the addresses in the audit log. One on this machine is not taken for the machine itself: `/metrics` needs a key through it.',
  }),
  requestTimeoutMs: duration({
    default: 30 * SECOND,
    min: SECOND,
    max: 10 * MINUTE,
    about: 'How long a client may take to send a request to the API.',
  }),
  inbox: boolean({
    default: (mode) => mode === 'dev',
    about:
      'A built-in receiver at /inbox/{token}, to try things out with. In memory: for a single process only.',
  }),
  readyNeedsWorkers: boolean({
    default: true,
    about:
      'Whether `/readyz` is 503 while no worker of the deployment delivers. false: an API server that can accept is ready; events wait for a worker.',
  }),
  lameDuckMs: duration({
    default: (mode) => (mode === 'serve' ? 5 * SECOND : 0),
    min: 0,
    max: 10 * MINUTE,
    about:
      'How long a stopping server still takes requests while `/readyz` is already 503, so that balancers send new ones elsewhere. Longer than the interval of their health checks. Comes before POSTHORN_DRAIN_MS.',
  }),
  drainMs: duration({
    default: 20 * SECOND,
    min: 0,
    max: 10 * MINUTE,
    about: 'Deadline of a graceful stop: what is in flight is finished or handed over until then.',
  }),
};

const processes = {
  role: choice({
    of: ['all', 'api', 'worker'],
    default: 'all',
    about: 'What this program does: answer the API, deliver, or both.',
  }),
  processes: integer({
    default: 1,
    min: 1,
    max: 128,
    about:
      'Child processes of `serve`. With role `all`, one in three answers the API and the others deliver: from 3 on, others stand in for one that hangs. 1: no child, everything in one process.',
  }),
};

const storage = {
  databaseUrl: url({
    env: 'DATABASE_URL',
    default: null,
    schemes: ['postgres', 'postgresql'],
    secret: true,
    about: 'PostgreSQL to use (15 or later). Not set: an embedded one, kept in the data directory.',
  }),
  directDatabaseUrl: url({
    default: null,
    schemes: ['postgres', 'postgresql'],
    secret: true,
    about:
      'The same database without a pooler in between. Set it if DATABASE_URL leads through one that shares connections by transaction.',
  }),
  waitForDatabase: boolean({
    flag: 'wait',
    default: (mode) => mode === 'serve',
    about:
      'At the start, wait for a database that is away instead of ending with an error. As a flag: `--wait`, `--no-wait`.',
  }),
  dataDir: text({
    default: './.posthorn',
    about: 'Directory of the embedded database and the generated keys.',
  }),
  databasePoolSize: integer({
    default: 10,
    min: 2,
    max: 500,
    about: 'Most connections to PostgreSQL that one process opens for queries.',
  }),
  partitionDays: integer({
    default: 7,
    min: 1,
    max: 365,
    about: 'Days of history in one partition. Retention drops whole partitions.',
  }),
  upkeepMs: duration({
    default: 60 * SECOND,
    min: 100,
    max: DAY,
    about: 'Pause between two rounds of housekeeping (partitions, expired keys, failing endpoints).',
  }),
  auditRetentionMs: duration({
    default: 365 * DAY,
    min: SECOND,
    max: 3650 * DAY,
    about: 'How long entries of the audit log are kept.',
  }),
};

const keys = {
  adminKey: text({
    default: null,
    secret: true,
    minLength: 16,
    maxLength: 512,
    about:
      'The first admin key. Not set: `dev` makes one and keeps it in the data directory, `serve` refuses to start.',
  }),
  encryptionKey: key32({
    default: null,
    about:
      'Encrypts secrets at rest. Not set: `dev` makes one and keeps it in the data directory, `serve` refuses to start.',
  }),
  previousEncryptionKeys: key32List({
    default: [],
    about: 'Retired encryption keys that can still read older secrets, newest first.',
  }),
  keyRequestsPerSecond: number({
    default: 0,
    min: 0,
    max: 1_000_000,
    about:
      'Requests a second that one API key may make of one process, unless it has a limit of its own; beyond it 429. 0: no limit.',
  }),
  keyRequestsBurst: integer({
    default: 100,
    min: 1,
    max: 1_000_000,
    about: 'Requests a key may make at once after a quiet time, if there is a limit.',
  }),
  signatureOverlapMs: duration({
    default: 24 * HOUR,
    min: 0,
    max: 90 * DAY,
    about: 'How long the old secret of an endpoint still signs beside the new one after a rotation.',
  }),
};

const log = {
  logLevel: choice({
    of: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    about: 'Least severe level that is logged.',
  }),
  logFormat: choice({
    of: ['auto', 'json', 'pretty'],
    default: 'auto',
    about: 'auto: pretty on a terminal, JSON lines otherwise.',
  }),
};

const accepting = {
  maxEventBytes: bytes({
    default: 256 * KIB,
    min: KIB,
    max: 64 * MIB,
    about: 'Largest `data` of one event; a larger one is answered 413.',
  }),
  maxBatchBytes: bytes({
    default: 10 * MIB,
    min: KIB,
    max: 256 * MIB,
    about: 'Largest body of a batch request.',
  }),
  maxNesting: integer({ default: 64, min: 1, max: 1000, about: 'Deepest nesting of `data`.' }),
  acceptQueueEvents: integer({
    default: 10_000,
    min: 1,
    max: 10_000_000,
    about: 'Events that may wait for their commit in one process; beyond it requests are answered 503.',
  }),
  acceptQueueBytes: bytes({
    default: 64 * MIB,
    min: KIB,
    max: 16 * GIB,
    about: 'Bytes that may wait for their commit in one process.',
  }),
  ingestBatchRows: integer({
    default: 500,
    min: 1,
    max: 10_000,
    about: 'Most events written by one commit.',
  }),
  ingestBatchBytes: bytes({
    default: 4 * MIB,
    min: KIB,
    max: 256 * MIB,
    about: 'Most bytes written by one commit; a single larger event is written alone.',
  }),
  outboxPollMs: duration({
    default: 20,
    min: 1,
    max: MINUTE,
    about: 'Pause between two looks at the outbox, in the one process that looks often.',
  }),
  outboxStandInMs: duration({
    default: SECOND,
    min: 10,
    max: HOUR,
    about: 'How long a row of the outbox waits before the other processes see to it.',
  }),
  tenantIngestPerSecond: number({
    default: 0,
    min: 0,
    max: 1_000_000,
    about: 'Events a second that one tenant may send to one process; beyond it 429. 0: no limit.',
  }),
  tenantIngestBurst: integer({
    default: 1000,
    min: 1,
    max: 10_000_000,
    about:
      'Events a tenant may send at once after a quiet time, if there is a limit. Smaller than a batch, that batch never fits.',
  }),
  idempotencyTtlMs: duration({
    default: 24 * HOUR,
    min: SECOND,
    max: 90 * DAY,
    about: 'How long an idempotency key is remembered, of an event or of another request.',
  }),
  idempotencyClaimMs: duration({
    default: 2 * MINUTE,
    min: 100,
    max: HOUR,
    about:
      'A request with an idempotency key that was begun and not answered in this time (its process died) may be carried out again. Longer than any request takes.',
  }),
};

const ownership = {
  heartbeatMs: duration({
    default: 300,
    min: 10,
    max: MINUTE,
    about: 'How often a worker renews its ownership. Less than half of the proof age.',
  }),
  proofMs: duration({
    default: SECOND,
    min: 50,
    max: 5 * MINUTE,
    about:
      'How old the last proof of ownership may be when an attempt starts; with an older one none is started.',
  }),
  deadAfterMs: duration({
    default: 8 * SECOND,
    min: 100,
    max: HOUR,
    about:
      'A worker that still holds its session lock but does not renew (paused, cut off) is taken over after this.',
  }),
  carefulAfterCrashes: integer({
    default: 3,
    min: 1,
    max: 100,
    about:
      'Unclean takeovers of a shard, within the window below, after which it is worked carefully: write before send, one at a time.',
  }),
  carefulWindowMs: duration({
    default: 10 * MINUTE,
    min: SECOND,
    max: DAY,
    about:
      'Window in which those takeovers are counted, and for how long the shard is then worked carefully.',
  }),
};

const dispatching = {
  maxSockets: integer({
    default: 2000,
    min: 1,
    max: 100_000,
    about: 'Most requests that one process has on the wire at once.',
  }),
  retrySocketShare: number({
    default: 0.4,
    min: 0.01,
    max: 0.99,
    about: 'Share of those that retries may use at most, so that they never delay fresh deliveries.',
  }),
  laneItems: integer({
    default: 200,
    min: 1,
    max: 100_000,
    about: 'Deliveries of one endpoint held in memory; the rest waits in PostgreSQL.',
  }),
  laneBudgetItems: integer({
    default: 50_000,
    min: 1,
    max: 10_000_000,
    about: 'Deliveries of all endpoints together held in memory by one process.',
  }),
  laneBudgetBytes: bytes({
    default: 64 * MIB,
    min: KIB,
    max: 16 * GIB,
    about: 'Bytes of payload held in memory for them.',
  }),
  unsettledCap: integer({
    default: 2000,
    min: 1,
    max: 1_000_000,
    about:
      'Outcomes not yet written down at which sending pauses: at most so many are sent twice if the process dies.',
  }),
  settleBatchRows: integer({
    default: 500,
    min: 1,
    max: 10_000,
    about: 'Most outcomes written by one commit.',
  }),
  sweepMs: duration({
    default: 5 * SECOND,
    min: 10,
    max: HOUR,
    about: 'Pause between two looks for work whose wake-up call was lost.',
  }),
  retryAfterCapMs: duration({
    default: 24 * HOUR,
    min: 0,
    max: 30 * DAY,
    about: 'The longest `Retry-After` of a receiver that is honoured.',
  }),
  taskTakeoverMs: duration({
    default: 10 * SECOND,
    min: 100,
    max: HOUR,
    about: 'A bulk task whose process was not heard of for so long is taken over by another.',
  }),
  discardUndoMs: duration({
    default: 10 * SECOND,
    min: 0,
    max: DAY,
    about: 'How long the discarding of a dead letter can be undone.',
  }),
};

const egress = {
  egressAllow: cidrs({
    default: (mode) => (mode === 'dev' ? ['127.0.0.0/8', '::1/128'] : []),
    about: 'Ranges that may be called in spite of the guard against private and reserved addresses.',
  }),
  egressDeny: cidrs({ default: [], about: 'Ranges that may never be called; outranks the allowed ones.' }),
  egressPorts: integers({
    default: [],
    min: 1,
    max: 65_535,
    about: 'Ports that may be called. None named: every port.',
  }),
  egressHttps: choice({
    of: ['required', 'except-loopback', 'optional'],
    default: (mode) => (mode === 'dev' ? 'except-loopback' : 'required'),
    about: 'Whether endpoints must be https. except-loopback: http is allowed to this machine only.',
  }),
  egressProxy: url({
    default: null,
    schemes: ['http'],
    secret: true,
    about: 'Forward proxy (HTTP CONNECT) for all deliveries, for static addresses of origin.',
  }),
  connectTimeoutMs: duration({
    default: 5 * SECOND,
    min: 10,
    max: 30 * SECOND,
    about: 'Deadline of a connection to a receiver, within the total deadline of the attempt.',
  }),
  requireChallenge: boolean({
    default: false,
    about: 'Whether endpoints that are registered with a tenant key must have a `challenge`.',
  }),
  challengeTimeoutMs: duration({
    default: 5 * SECOND,
    min: 50,
    max: 30 * SECOND,
    about: 'How long a receiver may take to answer a challenge.',
  }),
  challengesAtOnce: integer({
    default: 20,
    min: 1,
    max: 10_000,
    about: 'Challenges that one process waits for at once; a quarter of them at most for one tenant.',
  }),
  responseCapBytes: bytes({
    default: 16 * KIB,
    min: 0,
    max: 16 * MIB,
    about: 'How much of a response body is read and kept.',
  }),
};

const stream = {
  streamClients: integer({
    default: 50,
    min: 0,
    max: 10_000,
    about: 'Live tails (GET /v1/stream) that one process serves at once.',
  }),
  streamClientsPerKey: integer({
    default: 10,
    min: 1,
    max: 10_000,
    about: 'Of those, the ones with the same API key.',
  }),
  streamBufferBytes: bytes({
    default: 256 * KIB,
    min: KIB,
    max: 64 * MIB,
    about:
      'How much may wait for a live tail that reads slowly; beyond it messages are dropped, and counted.',
  }),
  streamMessagesPerSecond: integer({
    default: 200,
    min: 10,
    max: 100_000,
    about: 'Messages that one process gives to live tails; of more it shows a sample, and says so.',
  }),
  streamHeartbeatMs: duration({
    default: 15 * SECOND,
    min: 50,
    max: 10 * MINUTE,
    about: 'How often a live tail is sent a sign of life when nothing happens.',
  }),
};

const health = {
  statsFlushMs: duration({
    default: 5 * SECOND,
    min: 50,
    max: 10 * MINUTE,
    about:
      'How often what was counted is added up into statistics. Less often costs less, and shows it later.',
  }),
  statsCacheMs: duration({
    default: 2 * SECOND,
    min: 0,
    max: MINUTE,
    about: 'How long an answer of GET /v1/stats is shown again before it is made anew.',
  }),
  statsTypesPerTenant: integer({
    default: 100,
    min: 1,
    max: 10_000,
    about:
      'Event types that have statistics of their own, per tenant and hour (and for all tenants together). The rest is counted as `other`.',
  }),
  autoDisableDeadRate: number({
    default: 0.5,
    min: 0.01,
    max: 1,
    about: 'An endpoint is disabled when more than this share of its deliveries died within a day.',
  }),
  autoDisableMinDeliveries: integer({
    default: 50,
    min: 1,
    max: 1_000_000,
    about: 'Fewest deliveries in that day for the share to count.',
  }),
  autoDisableFailingMs: duration({
    default: 5 * DAY,
    min: SECOND,
    max: 365 * DAY,
    about: 'An endpoint is disabled when it only failed for this long.',
  }),
};

const metrics = {
  metrics: choice({
    of: ['on', 'off'],
    default: 'on',
    about: 'Whether /metrics is answered, and what it shows is counted.',
  }),
  metricsEventTypes: integer({
    default: 50,
    min: 0,
    max: 1000,
    about: 'Event types that are shown by name in metrics, the first that turn up; all others are "other".',
  }),
  metricsTenants: integer({
    default: 20,
    min: 0,
    max: 1000,
    about:
      'Tenants that are shown by name in metrics of dead letters, those that have most; all others are "other".',
  }),
  measureMs: duration({
    default: 15 * SECOND,
    min: 50,
    max: 10 * MINUTE,
    about:
      'How often what takes a query is measured: depth and age of the queue, dead letters. Scrapes show the last measurement.',
  }),
};

const relay = {
  relayFrom: url({
    flag: 'from',
    default: null,
    schemes: ['postgres', 'postgresql'],
    secret: true,
    about: 'Database that `posthorn relay` reads events from (13 or later; 14 for messages without a table).',
  }),
  relayMode: choice({
    flag: 'mode',
    of: ['poll', 'cdc'],
    default: 'poll',
    about: 'How the relay reads: by polling the table, or by following the log (change data capture).',
  }),
  relayName: text({
    flag: 'name',
    default: null,
    maxLength: 200,
    about: 'What the relay calls its source in the log and in metrics. Not set: host, port and database.',
  }),
  relayTable: text({
    flag: 'table',
    default: 'posthorn_outbox',
    maxLength: 127,
    about: 'Table that the relay reads, with its schema if that is not on the search path.',
  }),
  relayKeep: boolean({
    flag: 'keep',
    default: false,
    about: 'Published rows stay in the table, with `published_at` set, instead of being removed.',
  }),
  relaySlot: text({
    flag: 'slot',
    default: null,
    maxLength: 63,
    about: 'Replication slot that the relay follows. Not set: posthorn_ and the name of the database.',
  }),
  relayPublication: text({
    flag: 'publication',
    default: 'posthorn_outbox',
    maxLength: 63,
    about: 'Publication that has the table, for following the log.',
  }),
  relayPollMs: duration({
    default: 100,
    min: 1,
    max: HOUR,
    about: 'Pause of a polling relay when there was nothing to read.',
  }),
  relayReportMs: duration({
    default: 2 * SECOND,
    min: 50,
    max: 30 * SECOND,
    about: 'How often the relay reports its lag, and tells the source how far it has come.',
  }),
  relayMaxWalBytes: bytes({
    default: GIB,
    min: MIB,
    max: 1024 * GIB,
    about: 'Log kept by the source for the slot, beyond which the relay warns.',
  }),
};

const operational = {
  operatorTenant: text({
    default: 'posthorn',
    maxLength: 128,
    about:
      "The tenant whose endpoints may hear of everybody's: they get the operational events that they subscribe to by name.",
  }),
  operationalEventsMs: duration({
    default: SECOND,
    min: 10,
    max: HOUR,
    about: 'Pause between two looks for what is to be told as operational events.',
  }),
  operationalLevelsMs: duration({
    default: 15 * SECOND,
    min: 10,
    max: HOUR,
    about:
      'Pause between two looks at the number of dead letters and the age of the queue, if somebody wants to know.',
  }),
  deadEventWindowMs: duration({
    default: MINUTE,
    min: 10,
    max: DAY,
    about:
      'At most one `posthorn.delivery.dead` in so much time for each endpoint; it says how many there were.',
  }),
  deadLettersThreshold: integer({
    default: 100,
    min: 1,
    max: 1_000_000,
    about:
      'So many dead letters send a `posthorn.dead_letters.threshold`, and fewer than half of them another.',
  }),
  queueAgeThresholdMs: duration({
    default: MINUTE,
    min: 10,
    max: 30 * DAY,
    about:
      'A delivery that could be sent and waits so long sends a `posthorn.queue.age`; when all wait less than half, another.',
  }),
};

const tracing = {
  tracing: choice({
    of: ['off', 'on'],
    default: 'off',
    about:
      "Whether spans of publishing and delivering are sent to a collector by OpenTelemetry's protocol (docs/tracing.md).",
  }),
  tracingEndpoint: url({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    default: 'http://localhost:4318',
    schemes: ['http', 'https'],
    about: 'The collector (OTLP over HTTP). Its credentials go into OTEL_EXPORTER_OTLP_HEADERS.',
  }),
  tracingServiceName: text({
    env: 'OTEL_SERVICE_NAME',
    default: 'posthorn',
    maxLength: 255,
    about: 'The name of the service in its traces.',
  }),
  tracingSampleRate: number({
    default: 1,
    min: 0,
    max: 1,
    about:
      'The share of events that are traced, of those whose producer has not decided it by `traceparent`.',
  }),
  tracingFlushMs: duration({
    default: 5 * SECOND,
    min: 10,
    max: HOUR,
    about: 'How long a span may wait to be sent with others.',
  }),
};

/** In the order of the documentation. */
export const sections = {
  Server: server,
  Processes: processes,
  Storage: storage,
  Keys: keys,
  Log: log,
  Accepting: accepting,
  Ownership: ownership,
  Dispatch: dispatching,
  Egress: egress,
  'Endpoint health': health,
  'Live tail': stream,
  Metrics: metrics,
  'Operational events': operational,
  Tracing: tracing,
  Relay: relay,
};

export const settings = {
  ...server,
  ...processes,
  ...storage,
  ...keys,
  ...log,
  ...accepting,
  ...ownership,
  ...dispatching,
  ...egress,
  ...stream,
  ...health,
  ...metrics,
  ...operational,
  ...tracing,
  ...relay,
};
