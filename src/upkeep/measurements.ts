/** Takes figures that cost a query now and then, so that whoever asks for them gets the last ones at once. */
import type { Clock } from '../domain/clock.ts';
import { Recurring } from './recurring.ts';

export interface MeasurementsOptions<Figures> {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly measure: () => Promise<Figures>;
  readonly problem: (what: string, error: unknown) => void;
}

export class Measurements<Figures> extends Recurring {
  readonly #options: MeasurementsOptions<Figures>;
  #latest: { readonly takenAt: number; readonly figures: Figures } | null = null;

  constructor(options: MeasurementsOptions<Figures>) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  /** Null: nothing has been measured yet. */
  get latest(): { readonly takenAt: number; readonly figures: Figures } | null {
    return this.#latest;
  }

  protected override async work(): Promise<void> {
    const { clock, measure, problem } = this.#options;
    try {
      const takenAt = clock.monotonic();
      this.#latest = { takenAt, figures: await measure() };
    } catch (error) {
      problem('measure what waits', error);
    }
  }
}
