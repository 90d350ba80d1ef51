/** The policies that the lab compares: ours and variants of it, and what other systems document. */
import type { BreakerConfig, EndpointConfig } from '../src/domain/endpoint-config.ts';
import { type RetryPreset, retryPresets } from '../src/domain/retry.ts';
import type { Policy } from './trial.ts';

/** Values, so that a change of the default does not change what is compared. */
export const breakers = {
  /** Opens on 5 failures in a row or half of 20, for 5 minutes at first. */
  'five, 300 s': { consecutive: 5, failure_rate: 0.5, cooldown_seconds: 300 },
  /** The same with a first cooldown of 30 seconds. */
  'five, 30 s': { consecutive: 5, failure_rate: 0.5, cooldown_seconds: 30 },
  /** Opens on 10 failures in a row or 80 % of 20. */
  'ten, 30 s': { consecutive: 10, failure_rate: 0.8, cooldown_seconds: 30 },
  /** Opens on 20 failures in a row or 80 % of 20. */
  'twenty, 30 s': { consecutive: 20, failure_rate: 0.8, cooldown_seconds: 30 },
} as const satisfies Record<string, BreakerConfig>;

const presetPolicies = (Object.keys(retryPresets) as RetryPreset[]).flatMap((preset): Policy[] => [
  { id: preset, endpoint: { retry: { preset } } },
  { id: `${preset}, no breaker`, endpoint: { retry: { preset }, breaker: null } },
]);

/** Compared with "never disabled, no breaker": whether an endpoint is disabled would hide what its breaker does. */
const breakerPolicies = Object.entries(breakers).map(
  ([name, breaker]): Policy => ({ id: `breaker ${name}`, endpoint: { breaker }, disabling: 'never' }),
);

/** What may be changed at an endpoint, one thing at a time. */
const variants: readonly Policy[] = [
  { id: 'full jitter', endpoint: { retry: { jitter: 'full' } } },
  { id: 'equal jitter', endpoint: { retry: { jitter: 'equal' } } },
  { id: 'no jitter', endpoint: { retry: { jitter: 'none' } } },
  { id: 'Retry-After ignored', endpoint: {}, honoursRetryAfter: false },
  { id: '4xx retried', endpoint: { retry: { transient: ['4xx'] } } },
  { id: 'never disabled', endpoint: {}, disabling: 'never' },
  { id: 'never disabled, no breaker', endpoint: { breaker: null }, disabling: 'never' },
  { id: 'with replays', endpoint: {}, replays: true },
  { id: '4xx retried, with replays', endpoint: { retry: { transient: ['4xx'] } }, replays: true },
];

export interface Peer extends Policy {
  /** Where its schedule and rules are documented, and what is assumed. */
  readonly source: string;
}

const EVERYTHING: NonNullable<EndpointConfig['retry']>['transient'] = ['3xx', '4xx'];
const bare = { breaker: null } as const;

/** Every peer has the traffic, receivers and limits of the lab. Only its reaction to failures differs. */
export const peers: readonly Peer[] = [
  {
    id: 'reference',
    endpoint: { ...bare, retry: { preset: 'day', jitter: 'none' } },
    disabling: 'never',
    source:
      'the system whose measurements the fault models match: 8 attempts over 14 h. It also disables endpoints, but its figures do not say how it counts what they missed, so the lab disables none',
  },
  {
    id: 'PostgreSQL queue',
    endpoint: { ...bare, retry: { preset: 'minute', jitter: 'none' } },
    disabling: 'never',
    source: 'a published design on SKIP LOCKED: 0, 1 min, 5 min, 30 min, 2 h, 8 h, 24 h',
  },
  {
    id: 'textbook breaker',
    endpoint: { retry: { preset: 'fast', jitter: 'full' }, breaker: breakers['five, 300 s'] },
    disabling: 'never',
    source:
      'a published design with full jitter and a breaker (5 in a row or half in 10 min, 5 min, growing)',
  },
  {
    id: 'Svix',
    endpoint: {
      ...bare,
      retry: { schedule: [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000], transient: EVERYTHING },
    },
    honoursRetryAfter: false,
    disabling: 'failing',
    source:
      'docs.svix.com/retries: 8 attempts over 28 h, every answer but 2xx is retried, 15 s deadline, disabled after five days of failures',
  },
  {
    id: 'Convoy',
    endpoint: {
      ...bare,
      retry: {
        schedule: [0, ...Array.from({ length: 10 }, () => 100)],
        jitter: 'none',
        transient: EVERYTHING,
      },
    },
    honoursRetryAfter: false,
    disabling: 'never',
    source: 'its default strategy: linear, 10 retries 100 s apart',
  },
  {
    id: 'Outpost',
    endpoint: {
      ...bare,
      retry: {
        schedule: [0, ...Array.from({ length: 10 }, (_, n) => 30 * 2 ** n)],
        jitter: 'none',
        transient: EVERYTHING,
      },
      timeout_ms: 5_000,
    },
    honoursRetryAfter: false,
    disabling: 'never',
    source: 'its configuration reference: 30 s doubled, 10 retries over 8.5 h, 5 s deadline',
  },
  {
    id: 'Stripe',
    endpoint: {
      ...bare,
      retry: {
        schedule: [0, 300, 1_800, 7_200, 18_000, 36_000, 43_200, 43_200, 43_200, 43_200],
        transient: EVERYTHING,
        max_age_seconds: 90 * 3_600,
      },
    },
    honoursRetryAfter: false,
    disabling: 'never',
    source:
      'docs.stripe.com/webhooks: up to three days with exponential backoff; the single delays are not documented and assumed here',
  },
  {
    id: 'GitHub',
    endpoint: { ...bare, retry: { schedule: [0] }, timeout_ms: 10_000 },
    disabling: 'never',
    source: 'docs.github.com: a failed delivery is not repeated, 10 s deadline',
  },
];

export const policies: readonly Policy[] = [...presetPolicies, ...breakerPolicies, ...variants, ...peers];

export function findPolicy(id: string): Policy {
  const found = policies.find((policy) => policy.id === id);
  if (found === undefined) throw new Error(`There is no policy "${id}".`);
  return found;
}
