/**
 * How every endpoint does, hour by hour, counted in memory by the worker that owns it and added to the database every
 * few seconds: an attempt costs some increments and no write. What a killed worker had not added yet is missing
 * from the figures, and from nothing else.
 */
import type { Clock } from '../domain/clock.ts';
import { bucketOf } from '../domain/histogram.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome, Verdict } from '../domain/outcome.ts';
import type { Pool } from '../store/database.ts';
import { addStats, addTotals, type HourOfEndpoint, noTotals } from '../store/queries/stats.ts';

export interface EndpointStatsOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly problem: (what: string, error: unknown) => void;
}

const HOUR_MS = 3_600_000;
const ROWS_PER_WRITE = 500;
/** The last place counts all that needed so many tries or more. */
const MOST_TRIES = 10;

export class EndpointStats {
  readonly #options: EndpointStatsOptions;
  #current = new Map<Uuid, HourOfEndpoint>();
  /** Of hours that are over, or that could not be written yet. */
  #past: HourOfEndpoint[] = [];
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: EndpointStatsOptions) {
    this.#options = options;
  }

  /** `tries`: requests made for it since it was accepted or last replayed, this one included. */
  record(endpointId: Uuid, outcome: AttemptOutcome, verdict: Verdict, tries: number): void {
    const counts = this.#hourOf(endpointId, outcome.startedAt);
    counts.attempts += 1;
    if (verdict.kind === 'delivered') {
      counts.successes += 1;
      counts.delivered += 1;
      increment(counts.tries, Math.min(tries, MOST_TRIES) - 1);
    } else {
      counts.failures += 1;
      if (verdict.kind === 'dead') counts.dead += 1;
      else counts.retried += 1;
    }
    // Where nothing answered and nothing was waited for there is no response time.
    if (outcome.statusCode !== null || outcome.error?.class === 'timeout')
      increment(counts.latency, bucketOf(outcome.durationMs));
  }

  start(): void {
    if (this.#stopped || this.#cancel !== null) return;
    this.#cancel = this.#options.clock.after(this.#options.everyMs, () => {
      this.#cancel = null;
      this.#running = this.flush().finally(() => this.start());
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    this.#cancel = null;
    await this.#running;
    await this.flush();
  }

  async flush(): Promise<void> {
    const hours = oneForEach([...this.#past, ...this.#current.values()]);
    this.#past = [];
    this.#current = new Map();
    for (let i = 0; i < hours.length; i += ROWS_PER_WRITE) {
      const chunk = hours.slice(i, i + ROWS_PER_WRITE);
      try {
        await addStats(this.#options.pool, chunk);
      } catch (error) {
        this.#options.problem('write statistics', error);
        this.#past.push(...chunk);
      }
    }
  }

  #hourOf(endpointId: Uuid, at: number): HourOfEndpoint {
    const current = this.#current.get(endpointId);
    if (current !== undefined && at >= current.hour && at < current.hour + HOUR_MS) return current;
    const counts = { endpointId, hour: Math.floor(at / HOUR_MS) * HOUR_MS, ...noTotals() };
    if (current === undefined || counts.hour > current.hour) {
      this.#current.set(endpointId, counts);
      if (current !== undefined) this.#past.push(current);
    } else {
      this.#past.push(counts);
    }
    return counts;
  }
}

/** One row for each endpoint and hour: a statement cannot add to the same one twice. */
function oneForEach(hours: readonly HourOfEndpoint[]): HourOfEndpoint[] {
  const found = new Map<string, HourOfEndpoint>();
  for (const hour of hours) {
    const key = `${hour.endpointId} ${hour.hour}`;
    const same = found.get(key);
    if (same === undefined) found.set(key, hour);
    else addTotals(same, hour);
  }
  return [...found.values()];
}

/** Arrays are only as long as they need to be: most endpoints answer within a few buckets. */
function increment(counts: number[], index: number): void {
  while (counts.length <= index) counts.push(0);
  counts[index]! += 1;
}
