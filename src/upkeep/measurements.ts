/** Runs expensive measurements regularly, so that a scrape gets the latest figures without waiting for queries. */
import type { Clock } from '../domain/clock.ts';
import { Recurring } from './recurring.ts';

export interface MeasurementsOptions<Figures> {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly measure: () => Promise<Figures>;
  readonly onProblem: (what: string, error: unknown) => void;
}

export interface Measurement<Figures> {
  /** When it was started, on the monotonic clock. */
  readonly takenAt: number;
  readonly figures: Figures;
}

export class Measurements<Figures> extends Recurring {
  readonly #options: MeasurementsOptions<Figures>;
  #latest: Measurement<Figures> | null = null;

  constructor(options: MeasurementsOptions<Figures>) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  /** Null until the first measurement. */
  get latest(): Measurement<Figures> | null {
    return this.#latest;
  }

  protected override async work(): Promise<void> {
    const { clock, measure, onProblem } = this.#options;
    try {
      const takenAt = clock.monotonic();
      this.#latest = { takenAt, figures: await measure() };
    } catch (error) {
      onProblem('measure the figures for the metrics', error);
    }
  }
}
