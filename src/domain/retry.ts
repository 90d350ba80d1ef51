/**
 * When to attempt a delivery again. A policy is either a list of delays, one per attempt (the first is the delay before
 * the first attempt), or exponential (the first attempt immediately, then `base · factor^(n-1)` before retry n).
 */
export const jitters = ['full', 'equal', 'proportional', 'none'] as const;
export type Jitter = (typeof jitters)[number];

/** An exact code, or a class such as `4xx`. An exact code takes precedence over a class. */
export type StatusMatcher = number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx';

interface RetryRules {
  readonly jitter: Jitter;
  readonly maxAgeSeconds: number;
  readonly permanent: readonly StatusMatcher[];
  readonly transient: readonly StatusMatcher[];
}
export interface ScheduleRetry extends RetryRules {
  readonly kind: 'schedule';
  readonly schedule: readonly number[];
}
export interface ExponentialRetry extends RetryRules {
  readonly kind: 'exponential';
  readonly base: number;
  readonly factor: number;
  readonly max: number;
  readonly attempts: number;
}
export type RetryPolicy = ScheduleRetry | ExponentialRetry;

export const retryPresets = {
  default: [0, 30, 300, 1800, 7200, 28800, 86400],
  'standard-webhooks': [0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
  minute: [0, 60, 300, 1800, 7200, 28800, 86400],
  fast: [1, 5, 30, 300, 1800, 7200],
  patient: [0, 300, 1800, 7200, 18000, 36000],
  day: [0, 30, 120, 600, 1800, 3600, 14400, 28800],
} as const satisfies Record<string, readonly number[]>;
export type RetryPreset = keyof typeof retryPresets;

export const DEFAULT_MAX_AGE_SECONDS = 72 * 3600;
export const DEFAULT_PERMANENT: readonly StatusMatcher[] = ['3xx', '4xx'];
export const DEFAULT_TRANSIENT: readonly StatusMatcher[] = [408, 425, 429];

export function maxAttempts(policy: RetryPolicy): number {
  return policy.kind === 'schedule' ? policy.schedule.length : policy.attempts;
}

/** Seconds to wait before attempt `number` (1 is the first), without jitter. */
export function delaySeconds(policy: RetryPolicy, number: number): number {
  if (policy.kind === 'schedule') return policy.schedule[number - 1] ?? policy.schedule.at(-1) ?? 0;
  if (number <= 1) return 0;
  // factor^n is Infinity for large n, which min() handles.
  return Math.min(policy.base * policy.factor ** (number - 2), policy.max);
}

/** The sum of all delays: how long the schedule takes if every attempt fails immediately. */
export function totalDelaySeconds(policy: RetryPolicy): number {
  let total = 0;
  for (let number = 1; number <= maxAttempts(policy); number += 1) total += delaySeconds(policy, number);
  return total;
}

const PROPORTION = 0.1;

/** The longest delay that this policy or a `Retry-After` can cause. */
export function longestDelayMs(policy: RetryPolicy, retryAfterCapMs: number): number {
  const seconds = policy.kind === 'schedule' ? Math.max(0, ...policy.schedule) : policy.max;
  return Math.max(seconds * (1 + PROPORTION) * 1000, retryAfterCapMs);
}

/** Varies a delay at random, so that deliveries that failed together are not retried together. */
export function withJitter(seconds: number, jitter: Jitter, random: () => number): number {
  switch (jitter) {
    case 'none':
      return seconds;
    case 'full':
      return seconds * random();
    case 'equal':
      return seconds * (0.5 + 0.5 * random());
    case 'proportional':
      return seconds * (1 - PROPORTION + 2 * PROPORTION * random());
  }
}

export function delayMsBefore(policy: RetryPolicy, number: number, random: () => number): number {
  return Math.round(withJitter(delaySeconds(policy, number), policy.jitter, random) * 1000);
}

/** True if this status is worth a retry. An exact code precedes a class, and `transient` precedes `permanent`. */
export function isTransientStatus(policy: RetryPolicy, status: number): boolean {
  const statusClass = `${Math.floor(status / 100)}xx` as StatusMatcher;
  if (policy.transient.includes(status)) return true;
  if (policy.permanent.includes(status)) return false;
  if (policy.transient.includes(statusClass)) return true;
  return !policy.permanent.includes(statusClass);
}
