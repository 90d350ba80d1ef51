/** Rows of the journal, added up into what the tables of figures hold. Pure. */
import { increment } from '../domain/histogram.ts';
import type { Uuid } from '../domain/ids.ts';
import {
  addTotals,
  type Bucket,
  type EndpointBucket,
  type EventBucket,
  HOUR,
  MINUTE,
  noTotals,
  RESOLUTIONS,
  type Totals,
} from '../postgres/queries/stats.ts';
import {
  type JournalRow,
  NO_BUCKET,
  NUMBERS_PER_ATTEMPT,
  VERDICTS,
} from '../postgres/queries/stats-journal.ts';

/** The last place counts all that needed so many tries or more. */
const MOST_TRIES = 10;

/** Under which name an event type is counted in that hour. An empty tenant: all of them together. */
export type NameOfType = (tenant: string, hour: number, type: string) => string;

/** Made one by one as they are asked for: there may be tens of thousands. */
export interface Counted {
  readonly endpoints: Iterable<EndpointBucket>;
  readonly events: Iterable<EventBucket>;
}

const startOf = (seconds: number, at: number): number => Math.floor(at / (seconds * 1000)) * seconds * 1000;

export interface TypeOfHour {
  readonly tenant: string;
  readonly hour: number;
  readonly type: string;
}

/**
 * Takes rows in any number of portions: a busy journal is too much to be added up in one go. A row is counted twice, for
 * its endpoint and for the type of its tenant; the tenant, the type of all tenants and everything are sums of the latter.
 */
export class JournalSums {
  readonly #endpoints = new Figures<{ endpointId: Uuid }>();
  readonly #types = new Figures<{ tenant: string; type: string }>();

  add(rows: readonly JournalRow[]): void {
    for (const { at, counts } of rows) {
      const ofEndpoint = (endpointId: Uuid): Totals => this.#endpoints.of(endpointId, { endpointId }, at);
      const ofType = (tenant: string, type: string): Totals =>
        this.#types.of(`${tenant} ${type}`, { tenant, type }, at);
      for (const [tenant, type, number] of counts.accepted ?? []) ofType(tenant, type).accepted += number;
      for (const [endpointId, tenant, type, number] of counts.dead ?? []) {
        ofEndpoint(endpointId).dead += number;
        ofType(tenant, type).dead += number;
      }
      for (const [endpointId, tenant, type, numbers] of counts.attempts ?? []) {
        addAttempts(ofEndpoint(endpointId), numbers);
        addAttempts(ofType(tenant, type), numbers);
      }
    }
  }

  /** Every tenant, hour and type that the rows are about, and the same for all tenants together. */
  types(): TypeOfHour[] {
    const found = new Map<string, TypeOfHour>();
    for (const [{ tenant: named, type }, at] of this.#types) {
      const hour = startOf(HOUR, at);
      for (const tenant of [named, '']) found.set(`${hour} ${tenant} ${type}`, { tenant, hour, type });
    }
    return [...found.values()];
  }

  figures(nameOf: NameOfType): Counted {
    const events = new Figures<{ tenant: string; type: string }>();
    for (const [{ tenant: named, type }, at, totals] of this.#types) {
      for (const tenant of [named, '']) {
        for (const shown of [nameOf(tenant, startOf(HOUR, at), type), ''])
          addTotals(events.of(`${tenant} ${shown}`, { tenant, type: shown }, at), totals);
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
      increment(totals.tries, Math.min(tries, MOST_TRIES) - 1);
    } else {
      totals.failures += 1;
      if (numbers[i] === VERDICTS.dead) totals.dead += 1;
      else totals.retried += 1;
    }
    if (response !== NO_BUCKET) increment(totals.response, response);
    if (delivery !== NO_BUCKET) increment(totals.delivery, delivery);
  }
}

/** Counted by the minute; the longer times are sums of those. */
class Figures<Subject extends object> {
  readonly #subjects = new Map<string, { subject: Subject; minutes: Map<number, Totals> }>();

  of(name: string, subject: Subject, at: number): Totals {
    let found = this.#subjects.get(name);
    if (found === undefined) {
      found = { subject, minutes: new Map() };
      this.#subjects.set(name, found);
    }
    return totalsAt(found.minutes, startOf(MINUTE, at));
  }

  /** Subject, minute, and what was counted. */
  *[Symbol.iterator](): Iterator<readonly [Subject, number, Totals]> {
    for (const { subject, minutes } of this.#subjects.values())
      for (const [at, totals] of minutes) yield [subject, at, totals];
  }

  *buckets(): Iterable<Subject & Bucket & { totals: Totals }> {
    for (const { subject, minutes } of this.#subjects.values()) {
      for (const seconds of RESOLUTIONS) {
        const times = new Map<number, Totals>();
        for (const [at, totals] of minutes) addTotals(totalsAt(times, startOf(seconds, at)), totals);
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
