/**
 * Statistics: counts per endpoint, and per tenant and event type, by the minute, the quarter of an hour and the hour.
 *
 * Every commit that accepts or settles something writes one journal entry about what it did. Upkeep adds the entries up
 * a little later.
 */
import { addCounts } from './histogram.ts';
import type { Uuid } from './ids.ts';
import type { Verdict } from './outcome.ts';

export interface Totals {
  /** Events, not deliveries. Always 0 for an endpoint. */
  accepted: number;
  attempts: number;
  /** Attempts that were the first of their delivery, or the first after a replay. */
  firstTries: number;
  successes: number;
  failures: number;
  /** Failures that are followed by another attempt. */
  retried: number;
  delivered: number;
  dead: number;
  /** Histograms, see histogram.ts: response times, and times from acceptance to delivery. */
  readonly response: number[];
  readonly delivery: number[];
  /** How many deliveries needed one attempt, two attempts, and so on. */
  readonly tries: number[];
}

export const noTotals = (): Totals => ({
  accepted: 0,
  attempts: 0,
  firstTries: 0,
  successes: 0,
  failures: 0,
  retried: 0,
  delivered: 0,
  dead: 0,
  response: [],
  delivery: [],
  tries: [],
});

export function addTotals(to: Totals, from: Totals): void {
  to.accepted += from.accepted;
  to.attempts += from.attempts;
  to.firstTries += from.firstTries;
  to.successes += from.successes;
  to.failures += from.failures;
  to.retried += from.retried;
  to.delivered += from.delivered;
  to.dead += from.dead;
  addCounts(to.response, from.response);
  addCounts(to.delivery, from.delivery);
  addCounts(to.tries, from.tries);
}

/** Lengths of buckets, in seconds. */
export const MINUTE = 60;
export const QUARTER = 900;
export const HOUR = 3600;
export const RESOLUTIONS = [MINUTE, QUARTER, HOUR] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

/** When the bucket of this length that contains the time `at` begins. */
export const startOfBucket = (seconds: Resolution, at: number): number =>
  Math.floor(at / (seconds * 1000)) * seconds * 1000;

/** A span of time that begins at `at` (milliseconds since 1970) and is `seconds` long. */
export interface Bucket {
  readonly seconds: Resolution;
  readonly at: number;
}
export interface EndpointBucket extends Bucket {
  readonly endpointId: Uuid;
  readonly totals: Totals;
}
/** An empty `tenant` or `type` stands for all of them together. */
export interface EventBucket extends Bucket {
  readonly tenant: string;
  readonly type: string;
  readonly totals: Totals;
}
/** The bucket for event types of a tenant beyond the limit of types that are counted one by one. */
export const OTHER_TYPES = 'other';

/** What one commit did. Tuples instead of objects: every commit writes an entry, and names would double its size. */
export interface JournalEntry {
  /** Tenant, type, number of events. */
  readonly accepted?: readonly (readonly [string, string, number])[];
  /** Endpoint, tenant, type, and four numbers per attempt: verdict, try, bucket of response and of delivery time. */
  readonly attempts?: readonly (readonly [Uuid, string, string, readonly number[]])[];
  /** Endpoint, tenant, type, number of deliveries that died without a last attempt. */
  readonly dead?: readonly (readonly [Uuid, string, string, number])[];
  /** Endpoint, number of deliveries that were skipped because it is disabled. */
  readonly skipped?: readonly (readonly [Uuid, number])[];
}

export const NUMBERS_PER_ATTEMPT = 4;
export const VERDICTS: Readonly<Record<Verdict['kind'], number>> = { delivered: 0, retry: 1, dead: 2 };
/** Instead of a bucket: there was no response, or no delivery. */
export const NO_BUCKET = -1;
