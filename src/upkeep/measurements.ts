/** Takes the figures that cost a query now and then, so that whoever asks for them gets the last ones at once. */
import type { Clock } from '../domain/clock.ts';
import type { Pool } from '../store/database.ts';
import { countDeadLetters, type DeadLetterDepth } from '../store/queries/count-dead-letters.ts';

export interface Measured<Waiting> {
  readonly takenAt: number;
  readonly waiting: Waiting;
  /** Null: another process measures it. */
  readonly deadLetters: DeadLetterDepth | null;
}

export interface MeasurementsOptions<Waiting> {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly everyMs: number;
  readonly tenants: number;
  readonly waiting: () => Promise<Waiting>;
  /** Figures of the whole database are taken by one process only: this one? */
  readonly isMine: () => boolean;
  /** Something to measure besides, at the same rhythm. */
  readonly alsoMeasure: () => void;
  readonly problem: (what: string, error: unknown) => void;
}

const MOST_DEAD_LETTERS = 1_000_000;

export class Measurements<Waiting> {
  readonly #options: MeasurementsOptions<Waiting>;
  #latest: Measured<Waiting> | null = null;
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: MeasurementsOptions<Waiting>) {
    this.#options = options;
  }

  /** Null: nothing has been measured yet. */
  get latest(): Measured<Waiting> | null {
    return this.#latest;
  }

  start(): void {
    if (this.#stopped || this.#cancel !== null) return;
    this.#cancel = this.#options.clock.after(this.#options.everyMs, () => {
      this.#cancel = null;
      this.#running = this.runOnce().finally(() => this.start());
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    this.#cancel = null;
    await this.#running;
  }

  async runOnce(): Promise<void> {
    const { pool, clock, tenants, waiting, isMine, alsoMeasure, problem } = this.#options;
    alsoMeasure();
    try {
      const takenAt = clock.monotonic();
      const deadLetters = isMine()
        ? await countDeadLetters(pool, { tenants, most: MOST_DEAD_LETTERS })
        : null;
      this.#latest = { takenAt, deadLetters, waiting: await waiting() };
    } catch (error) {
      problem('measure what waits', error);
    }
  }
}
