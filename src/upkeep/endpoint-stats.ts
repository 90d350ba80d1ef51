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
  #hours = new Map<string, HourOfEndpoint>();
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
    const hours = [...this.#hours.values()];
    this.#hours = new Map();
    for (let i = 0; i < hours.length; i += ROWS_PER_WRITE) {
      const chunk = hours.slice(i, i + ROWS_PER_WRITE);
      try {
        await addStats(this.#options.pool, chunk);
      } catch (error) {
        this.#options.problem('write statistics', error);
        for (const hour of chunk) addTotals(this.#hourOf(hour.endpointId, hour.hour), hour);
      }
    }
  }

  #hourOf(endpointId: Uuid, at: number): HourOfEndpoint {
    const hour = Math.floor(at / HOUR_MS) * HOUR_MS;
    const key = `${endpointId}${hour}`;
    let counts = this.#hours.get(key);
    if (counts === undefined) {
      counts = { endpointId, hour, ...noTotals() };
      this.#hours.set(key, counts);
    }
    return counts;
  }
}

/** Arrays are only as long as they need to be: most endpoints answer within a few buckets. */
function increment(counts: number[], index: number): void {
  while (counts.length <= index) counts.push(0);
  counts[index]! += 1;
}
