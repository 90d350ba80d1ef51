import { bytes, choice, duration, hostNames, integer, listenAddress, number, text, url } from '../kinds.ts';
import { DAY, HOUR, KIB, MIB, MINUTE, SECOND } from './units.ts';

export const health = {
  statsFlushMs: duration({
    internal: true,
    default: 5 * SECOND,
    min: 50,
    max: 10 * MINUTE,
    about: 'How often counts are added to the statistics.',
  }),
  statsCacheMs: duration({
    internal: true,
    default: 2 * SECOND,
    min: 0,
    max: MINUTE,
    about: 'How long a response of GET /v1/stats is cached.',
  }),
  statsTypesPerTenant: integer({
    internal: true,
    default: 100,
    min: 1,
    max: 10_000,
    about:
      'Number of event types with statistics of their own, per tenant and hour. The rest is counted as `other`.',
  }),
  autoDisableDeadRate: number({
    default: 0.5,
    min: 0.01,
    max: 1,
    about: 'An endpoint is disabled if more than this share of its deliveries died within a day.',
  }),
  autoDisableMinDeliveries: integer({
    default: 50,
    min: 1,
    max: 1_000_000,
    about: 'Minimum number of deliveries within a day for POSTHORN_AUTO_DISABLE_DEAD_RATE to apply.',
  }),
  autoDisableDeadMs: duration({
    default: HOUR,
    min: 0,
    max: 23 * HOUR,
    about:
      'Minimum time between the first and the last delivery that died within the day, in quarters of an hour. A short streak of rejections disables nothing. 0: no minimum.',
  }),
  autoDisableFailingMs: duration({
    default: 5 * DAY,
    min: SECOND,
    max: 365 * DAY,
    about: 'An endpoint is disabled if every attempt has failed for this long.',
  }),
};

export const stream = {
  streamClients: integer({
    default: 50,
    min: 0,
    max: 10_000,
    about: 'Maximum number of live tails (GET /v1/stream) per process.',
  }),
  streamClientsPerKey: integer({
    internal: true,
    default: 10,
    min: 1,
    max: 10_000,
    about: 'Maximum number of live tails per API key and process.',
  }),
  streamClientsPerTenant: integer({
    internal: true,
    default: 20,
    min: 1,
    max: 10_000,
    about: 'Maximum number of live tails per process that the keys and users of one tenant open together.',
  }),
  streamBufferBytes: bytes({
    internal: true,
    default: 256 * KIB,
    min: KIB,
    max: 64 * MIB,
    about: 'Buffer for a live tail that reads slowly. Messages beyond it are dropped and counted.',
  }),
  streamMessagesPerSecond: integer({
    internal: true,
    default: 200,
    min: 10,
    max: 100_000,
    about:
      'Maximum number of live tail messages per process and second. Beyond it live tails show a sample and say so.',
  }),
  streamHeartbeatMs: duration({
    internal: true,
    default: 15 * SECOND,
    min: 50,
    max: 10 * MINUTE,
    about: 'How often an idle live tail gets a heartbeat.',
  }),
};

export const metrics = {
  metrics: choice({
    of: ['on', 'off'],
    default: 'on',
    about: 'Whether metrics are collected and served at /metrics.',
  }),
  metricsAccess: choice({
    of: ['auto', 'key', 'open'],
    default: 'auto',
    about:
      'Who may read `/metrics`. `auto`: requests that come directly from this machine need no key. `key`: every request needs one. `open`: no request needs one.',
  }),
  metricsAddr: listenAddress({
    default: null,
    about:
      'A separate address for `/metrics`, such as 10.0.0.5:9464. The port of the API then answers 404. POSTHORN_METRICS_ACCESS applies to it.',
  }),
  metricsEventTypes: integer({
    default: 50,
    min: 0,
    max: 1000,
    about: 'Number of event types that metrics show by name: the first ones seen. The rest is `other`.',
  }),
  metricsTenants: integer({
    default: 20,
    min: 0,
    max: 1000,
    about:
      'Number of tenants that the dead-letter metrics show by name: those with the most. The rest is `other`.',
  }),
  measureMs: duration({
    internal: true,
    default: 15 * SECOND,
    min: 50,
    max: 10 * MINUTE,
    about:
      'How often metrics that need a query are measured: queue depth and age, dead letters. Scrapes return the last measurement.',
  }),
};

export const operational = {
  operatorTenant: text({
    default: 'posthorn',
    maxLength: 128,
    about:
      'The tenant whose endpoints may receive operational events of all tenants: those with `operator: true` that subscribe by name. Only admin keys may use this tenant.',
  }),
  operationalEventsMs: duration({
    internal: true,
    default: SECOND,
    min: 10,
    max: HOUR,
    about:
      'How often operational events are published. Processes other than the owner of shard 0 look for them five times less often.',
  }),
  operationalLevelsMs: duration({
    internal: true,
    default: 15 * SECOND,
    min: 10,
    max: HOUR,
    about:
      'How often the number of dead letters and the queue age are checked, if an endpoint subscribes to them.',
  }),
  deadEventWindowMs: duration({
    default: MINUTE,
    min: 10,
    max: DAY,
    about: 'At most one `posthorn.delivery.dead` event per endpoint in this time. It carries the count.',
  }),
  deadLettersThreshold: integer({
    default: 100,
    min: 1,
    max: 1_000_000,
    about:
      'Number of dead letters that triggers `posthorn.dead_letters.threshold`. Falling below half of it triggers it again.',
  }),
  queueAgeThresholdMs: duration({
    default: MINUTE,
    min: 10,
    max: 30 * DAY,
    about:
      'Waiting time of a sendable delivery that triggers `posthorn.queue.age`. Falling below half of it triggers it again.',
  }),
};

export const notices = {
  smtpUrl: url({
    default: null,
    schemes: ['smtp', 'smtps'],
    secret: true,
    about:
      'The mail server for notices, such as smtp://user:password@mail.example.com:587. Without it, notifiers cannot have e-mail addresses.',
  }),
  smtpFrom: text({
    default: null,
    maxLength: 320,
    about:
      'The sender of e-mail, such as `Posthorn <posthorn@example.com>`. Required with POSTHORN_SMTP_URL.',
  }),
  noticeWindowMs: duration({
    default: MINUTE,
    min: 10,
    max: DAY,
    about: 'Notices of a notifier within this time after the first are sent as one message.',
  }),
  notifierHosts: hostNames({
    default: ['hooks.slack.com'],
    about:
      'With POSTHORN_REQUIRE_CHALLENGE: hosts that tenant keys may name in `url` of a notifier, because a chat cannot answer a challenge. `*.example.com` means all names below it.',
  }),
  confirmationTtlMs: duration({
    internal: true,
    default: DAY,
    min: SECOND,
    max: 30 * DAY,
    about: 'How long the link that confirms an e-mail address works.',
  }),
};

export const tracing = {
  tracing: choice({
    of: ['off', 'on'],
    default: 'off',
    about: 'Whether OpenTelemetry spans of publishing and delivering are exported (docs/tracing.md).',
  }),
  tracingEndpoint: url({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    default: 'http://localhost:4318',
    schemes: ['http', 'https'],
    about: 'The collector (OTLP over HTTP). Put its credentials into OTEL_EXPORTER_OTLP_HEADERS.',
  }),
  tracingServiceName: text({
    env: 'OTEL_SERVICE_NAME',
    default: 'posthorn',
    maxLength: 255,
    about: 'Service name in traces.',
  }),
  tracingSampleRate: number({
    default: 1,
    min: 0,
    max: 1,
    about: 'Share of events that are traced, unless the producer decided it by `traceparent`.',
  }),
  tracingFlushMs: duration({
    internal: true,
    default: 5 * SECOND,
    min: 10,
    max: HOUR,
    about: 'How long a span may wait to be exported together with others.',
  }),
};
