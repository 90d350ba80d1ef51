import {
  boolean,
  bytes,
  choice,
  cidrs,
  duration,
  hostNames,
  integer,
  integers,
  key32,
  key32List,
  number,
  text,
  url,
} from '../kinds.ts';
import { DAY, HOUR, KIB, MIB, SECOND } from './units.ts';

export const keys = {
  adminKey: text({
    default: null,
    secret: true,
    minLength: 16,
    maxLength: 512,
    about:
      'The first admin key. If unset, `dev` generates one in the data directory and `serve` refuses to start.',
  }),
  encryptionKey: key32({
    default: null,
    about:
      'Encrypts secrets at rest. If unset, `dev` generates one in the data directory and `serve` refuses to start.',
  }),
  previousEncryptionKeys: key32List({
    default: [],
    about: 'Retired encryption keys that can still decrypt older secrets, newest first.',
  }),
  keyRequestsPerSecond: number({
    default: 0,
    min: 0,
    max: 1_000_000,
    about:
      'Rate limit per API key or signed-in person, unless the key has its own limit. Each process counts for itself, unless POSTHORN_REDIS_URL is set. Requests beyond it get 429. 0 disables the limit.',
  }),
  keyRequestsBurst: integer({
    default: 100,
    min: 1,
    max: 1_000_000,
    about: 'Burst of the rate limit per API key.',
  }),
  signatureOverlapMs: duration({
    default: 24 * HOUR,
    min: 0,
    max: 90 * DAY,
    about: 'After a rotation, the old secret of an endpoint keeps signing beside the new one for this long.',
  }),
};

export const endpointLimits = {
  maxEndpointsPerTenant: integer({
    default: 10_000,
    min: 0,
    max: 1_000_000,
    about:
      'How many endpoints a tenant may have, unless it has its own `max_endpoints`. Endpoints that exist already stay; new ones are refused.',
  }),
  maxPatternsPerTenant: integer({
    default: 100_000,
    min: 0,
    max: 100_000_000,
    about:
      'How many patterns the `events` of all endpoints of a tenant may have together, beyond one for each endpoint. Every process keeps all patterns in memory, up to 400 bytes each. Endpoints that exist already stay; what would add more is refused.',
  }),
  uniqueEndpoints: boolean({
    default: false,
    about:
      'Whether a second endpoint with the same tenant and URL that gets some of the same events is refused (409 `endpoint_exists`). `false`: the answer has a warning.',
  }),
};

export const egress = {
  egressAllow: cidrs({
    default: (mode) => (mode === 'dev' ? ['127.0.0.0/8', '::1/128'] : []),
    about: 'Address ranges that may be called although they are private or reserved.',
  }),
  egressDeny: cidrs({
    default: [],
    about: 'Address ranges that may never be called. Takes precedence over the allowed ranges.',
  }),
  egressPorts: integers({
    default: [],
    min: 1,
    max: 65_535,
    about: 'Ports that may be called. An empty list allows every port.',
  }),
  egressHttps: choice({
    of: ['required', 'except-loopback', 'optional'],
    default: (mode) => (mode === 'dev' ? 'except-loopback' : 'required'),
    about: 'Whether endpoint URLs must use https. `except-loopback` allows http to this machine only.',
  }),
  egressErrors: choice({
    of: ['uniform', 'detailed'],
    default: (mode) => (mode === 'serve' ? 'uniform' : 'detailed'),
    about:
      'What attempts say about a host name that resolves to an address that may not be called. `uniform`: `dns_failed`, as for a name that does not resolve, so that tenants cannot find out which names your network knows. `detailed`: `egress_forbidden`, and the code of the resolver.',
  }),
  egressProxy: url({
    default: null,
    schemes: ['http'],
    secret: true,
    about: 'Forward proxy (HTTP CONNECT) for all deliveries, for example to send from static addresses.',
  }),
  connectTimeoutMs: duration({
    internal: true,
    default: 5 * SECOND,
    min: 10,
    max: 30 * SECOND,
    about: "Time limit for connecting to a receiver. It is part of the attempt's total deadline.",
  }),
  requireChallenge: boolean({
    default: false,
    about: 'Whether endpoints that are registered with a tenant key must pass a `challenge`.',
  }),
  tokenHosts: hostNames({
    default: [],
    about:
      'With POSTHORN_REQUIRE_CHALLENGE: hosts that tenant keys may name in `auth.token_url`, besides the host of the endpoint, which has passed the challenge. `*.example.com` means all names below it.',
  }),
  challengeTimeoutMs: duration({
    internal: true,
    default: 5 * SECOND,
    min: 50,
    max: 30 * SECOND,
    about: 'Time limit for a receiver to answer a challenge.',
  }),
  challengesAtOnce: integer({
    internal: true,
    default: 20,
    min: 1,
    max: 10_000,
    about: 'Maximum number of challenges in flight per process. One tenant may use a quarter of them.',
  }),
  responseCapBytes: bytes({
    default: 16 * KIB,
    min: 0,
    max: 16 * MIB,
    about: 'How much of a response body is read and stored.',
  }),
};
