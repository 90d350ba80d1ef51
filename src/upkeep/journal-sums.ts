/** Adds up rows of the statistics journal. Pure. */
import { increment } from '../domain/histogram.ts';
import type { Uuid } from '../domain/ids.ts';
import {
  addTotals,
  type Bucket,
  type EndpointBucket,
  type EventBucket,
  HOUR,
  MINUTE,
  NO_BUCKET,
  NUMBERS_PER_ATTEMPT,
  noTotals,
  OTHER_TYPES,
  RESOLUTIONS,
  startOfBucket,
  type Totals,
  VERDICTS,
} from '../domain/statistics.ts';
import type { SkippedCount } from '../ports/statistics-store.ts';
import { ALL_TENANTS } from './counted-types.ts';
import type { ReadableRow } from './read-journal.ts';

/** The last place of `Totals.tries` counts deliveries that needed this many attempts or more. */
const MAX_TRIES = 10;

/** The name under which an event type is counted in the hour that begins at `hour`. */
export type NameOfType = (tenant: string, hour: number, type: string) => string;

/** Iterables, because there may be tens of thousands of buckets: each is created when it is read. */
export interface SummedBuckets {
  readonly endpoints: Iterable<EndpointBucket>;
  readonly events: Iterable<EventBucket>;
}

/**
 * Sums rows of the journal in portions, because adding up a busy journal at once would block the process. Each row counts
 * for its endpoint, and for the event type of its tenant. All other totals are sums of the totals per event type.
 */
export class JournalSums {
  readonly #endpoints = new MinuteTotals<{ endpointId: Uuid }>();
  readonly #types = new MinuteTotals<{ tenant: string; type: string }>();
  /** By endpoint and second: a long journal of a large fan-out has too many entries to keep each. */
  readonly #skipped = new Map<string, { endpointId: Uuid; at: number; count: number }>();
  readonly #nameOfType: NameOfType;

  constructor(nameOfType: NameOfType) {
    this.#nameOfType = nameOfType;
  }

  add(rows: readonly ReadableRow[]): void {
    for (const { at, entry } of rows) {
      const ofEndpoint = (endpointId: Uuid): Totals => this.#endpoints.of(endpointId, { endpointId }, at);
      const ofType = (tenant: string, type: string): Totals => this.#totalsOfType(tenant, type, at);
      for (const [tenant, type, count] of entry.accepted ?? []) ofType(tenant, type).accepted += count;
      for (const [endpointId, tenant, type, count] of entry.dead ?? []) {
        ofEndpoint(endpointId).dead += count;
        ofType(tenant, type).dead += count;
      }
      for (const [endpointId, tenant, type, numbers] of entry.attempts ?? []) {
        addAttempts(ofEndpoint(endpointId), numbers);
        addAttempts(ofType(tenant, type), numbers);
      }
      for (const [endpointId, count] of entry.skipped ?? []) this.#addSkipped(endpointId, at, count);
    }
  }

  /** Types that are counted as `other` share their totals: a tenant may invent a type for each event. */
  #totalsOfType(tenant: string, type: string, at: number): Totals {
    const hour = startOfBucket(HOUR, at);
    const isCounted = [tenant, ALL_TENANTS].some((subject) => this.#nameOfType(subject, hour, type) === type);
    const countedType = isCounted ? type : OTHER_TYPES;
    return this.#types.of(`${tenant} ${countedType}`, { tenant, type: countedType }, at);
  }

  #addSkipped(endpointId: Uuid, at: number, count: number): void {
    const key = `${endpointId} ${Math.floor(at / 1000)}`;
    const found = this.#skipped.get(key);
    if (found === undefined) this.#skipped.set(key, { endpointId, at, count });
    else found.count += count;
  }

  skipped(): readonly SkippedCount[] {
    return [...this.#skipped.values()];
  }

  buckets(): SummedBuckets {
    const events = new MinuteTotals<{ tenant: string; type: string }>();
    for (const [{ tenant: named, type }, at, totals] of this.#types) {
      for (const tenant of [named, ALL_TENANTS]) {
        for (const countedType of [this.#nameOfType(tenant, startOfBucket(HOUR, at), type), ''])
          addTotals(events.of(`${tenant} ${countedType}`, { tenant, type: countedType }, at), totals);
      }
    }
    return { endpoints: this.#endpoints.buckets(), events: events.buckets() };
  }
}

function addAttempts(totals: Totals, numbers: readonly number[]): void {
  for (let i = 0; i < numbers.length; i += NUMBERS_PER_ATTEMPT) {
    const tries = numbers[i + 1]!;
    const response = numbers[i + 2]!;
    const delivery = numbers[i + 3]!;
    totals.attempts += 1;
    if (tries === 1) totals.firstTries += 1;
    if (numbers[i] === VERDICTS.delivered) {
      totals.successes += 1;
      totals.delivered += 1;
      increment(totals.tries, Math.min(tries, MAX_TRIES) - 1);
    } else {
      totals.failures += 1;
      if (numbers[i] === VERDICTS.dead) totals.dead += 1;
      else totals.retried += 1;
    }
    if (response !== NO_BUCKET) increment(totals.response, response);
    if (delivery !== NO_BUCKET) increment(totals.delivery, delivery);
  }
}

/** Totals per subject and minute. Longer buckets are sums of minutes. */
class MinuteTotals<Subject extends object> {
  readonly #subjects = new Map<string, { subject: Subject; minutes: Map<number, Totals> }>();

  of(name: string, subject: Subject, at: number): Totals {
    let found = this.#subjects.get(name);
    if (found === undefined) {
      found = { subject, minutes: new Map() };
      this.#subjects.set(name, found);
    }
    return totalsAt(found.minutes, startOfBucket(MINUTE, at));
  }

  *[Symbol.iterator](): Iterator<readonly [subject: Subject, minute: number, totals: Totals]> {
    for (const { subject, minutes } of this.#subjects.values())
      for (const [at, totals] of minutes) yield [subject, at, totals];
  }

  *buckets(): Iterable<Subject & Bucket & { totals: Totals }> {
    for (const { subject, minutes } of this.#subjects.values()) {
      for (const seconds of RESOLUTIONS) {
        const times = new Map<number, Totals>();
        for (const [at, totals] of minutes) addTotals(totalsAt(times, startOfBucket(seconds, at)), totals);
        for (const [at, totals] of times) yield { ...subject, seconds, at, totals };
      }
    }
  }
}

function totalsAt(times: Map<number, Totals>, at: number): Totals {
  let totals = times.get(at);
  if (totals === undefined) {
    totals = noTotals();
    times.set(at, totals);
  }
  return totals;
}
