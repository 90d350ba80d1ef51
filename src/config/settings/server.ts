import { boolean, choice, cidrs, duration, integer, listenAddress, listOf, text, url } from '../kinds.ts';
import { DAY, MINUTE, SECOND } from './units.ts';

/** Whether the text is a scheme and a host, perhaps with a port, and nothing else. */
function isOrigin(given: string): boolean {
  const url = URL.parse(given);
  return url !== null && ['http:', 'https:'].includes(url.protocol) && url.origin === given;
}

export const server = {
  port: integer({
    env: 'PORT',
    default: 8787,
    min: 0,
    max: 65_535,
    about: 'Port of the API and the console. 0 picks a free port.',
  }),
  host: text({
    env: 'HOST',
    default: '127.0.0.1',
    about: 'Address to listen on. 0.0.0.0 means every interface.',
  }),
  publicUrl: url({
    default: null,
    schemes: ['http', 'https'],
    about:
      'Base URL of this server for its clients: in links of thin payloads and operational events, in the redirect URI of sign-in, and for commands that call the API (`posthorn keys`, `catalogue`, `kafka`, `archive restore`). If unset: http://HOST:PORT.',
  }),
  trustedProxies: cidrs({
    default: [],
    about:
      'Proxies in front of the API whose `X-Forwarded-For` header is trusted, for client addresses in the audit log and for `allowed_ips` of keys. Through such a proxy `/metrics` always needs a key.',
  }),
  portalOrigins: listOf({
    default: [],
    of: 'an origin such as https://app.example.com',
    isValid: isOrigin,
    about:
      'Origins of the pages that may show the console in a frame, for portal sessions. If unset, no page may.',
  }),
  requestTimeoutMs: duration({
    internal: true,
    default: 30 * SECOND,
    min: SECOND,
    max: 10 * MINUTE,
    about: 'Time limit for a client to send its request to the API.',
  }),
  answerTimeoutMs: duration({
    internal: true,
    default: 30 * SECOND,
    min: SECOND,
    max: 10 * MINUTE,
    about:
      'Posthorn closes the connection of a client that reads nothing of its answer for this time, plus a second for every 64 KiB that are left.',
  }),
  inbox: boolean({
    default: (mode) => mode === 'dev',
    about:
      'Enables the built-in test receiver at /inbox/{token}. It stores requests in PostgreSQL for a while.',
  }),
  readyNeedsWorkers: boolean({
    default: true,
    about:
      'Whether `/readyz` is 503 while no worker of the deployment delivers. `false`: an API server that can accept events is ready, and events wait for a worker.',
  }),
  lameDuckMs: duration({
    default: (mode) => (mode === 'serve' ? 5 * SECOND : 0),
    min: 0,
    max: 10 * MINUTE,
    about:
      'How long a stopping server still serves requests while `/readyz` is already 503, so that load balancers send new requests elsewhere. Must be longer than the interval of their health checks. Comes before POSTHORN_DRAIN_MS.',
  }),
  drainMs: duration({
    default: 20 * SECOND,
    min: 0,
    max: 10 * MINUTE,
    about: 'Deadline of a graceful stop. Requests in flight are finished or handed over within it.',
  }),
};

export const processes = {
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
      'Number of child processes of `serve`. With role `all`, one in three answers the API and the others deliver; with three or more, another worker takes over from one that hangs. 1 runs everything in a single process.',
  }),
  region: text({
    default: null,
    maxLength: 32,
    about:
      'The region of the workers of this program, such as `eu`: they send to the endpoints that name it, and to no others. If unset: the default region, for all endpoints without a region. At least one worker of the deployment must be in the default region.',
  }),
  regionFallbackAfterMs: duration({
    default: null,
    min: SECOND,
    max: 30 * DAY,
    about:
      'When a region has had no worker for this long, workers of the default region send for it, until it has one again. If unset: never, its deliveries wait.',
  }),
  peerListen: listenAddress({
    default: null,
    about:
      'Address and port on which this node takes deliveries that other nodes have accepted, such as 10.0.0.5:0 (port 0: a free one for each process). The connections use TLS and prove that both sides know the encryption key. If unset, nodes notify each other through the database, or use POSTHORN_REDIS_URL.',
  }),
  peerHost: text({
    default: null,
    maxLength: 253,
    about:
      'Host name or address under which other nodes reach this one. If unset: that of POSTHORN_PEER_LISTEN.',
  }),
};

export const log = {
  logLevel: choice({
    of: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    about: 'Lowest level that is logged.',
  }),
  logFormat: choice({
    of: ['auto', 'json', 'pretty'],
    default: 'auto',
    about: '`auto` writes pretty lines to a terminal and JSON lines otherwise.',
  }),
};

export const storage = {
  databaseUrl: url({
    env: 'DATABASE_URL',
    default: null,
    schemes: ['postgres', 'postgresql'],
    secret: true,
    about: 'PostgreSQL to use (15 or later). If unset, an embedded server runs in the data directory.',
  }),
  directDatabaseUrl: url({
    default: null,
    schemes: ['postgres', 'postgresql'],
    secret: true,
    about:
      'The same database without a pooler in between. Set it if DATABASE_URL leads through a pooler in transaction mode.',
  }),
  waitForDatabase: boolean({
    flag: 'wait',
    default: (mode) => mode === 'serve',
    about:
      'At start, wait for a database that cannot be reached instead of exiting with an error. As a flag: `--wait`, `--no-wait`.',
  }),
  dataDir: text({
    default: './.posthorn',
    about: 'Directory of the embedded database and the generated keys.',
  }),
  databasePoolSize: integer({
    default: 10,
    min: 2,
    max: 500,
    about: 'Maximum number of connections per process for API queries.',
  }),
  partitionDays: integer({
    internal: true,
    default: 7,
    min: 1,
    max: 365,
    about: 'Days of history per partition.',
  }),
  upkeepMs: duration({
    internal: true,
    default: 60 * SECOND,
    min: 100,
    max: DAY,
    about: 'Interval of housekeeping: partitions, expired keys, failing endpoints.',
  }),
  skippedPerEndpoint: integer({
    default: 100_000,
    min: 0,
    max: 10_000_000,
    about:
      'How many deliveries that were skipped while an endpoint was disabled are kept per endpoint, the newest.',
  }),
  skippedRetentionMs: duration({
    default: 30 * DAY,
    min: SECOND,
    max: 3650 * DAY,
    about: 'How long deliveries that were skipped while an endpoint was disabled are kept.',
  }),
  auditRetentionMs: duration({
    internal: true,
    default: null,
    min: SECOND,
    max: 3650 * DAY,
    about: 'Deprecated: use `POSTHORN_RETENTION_AUDIT`. If it is set, it takes precedence.',
  }),
};
