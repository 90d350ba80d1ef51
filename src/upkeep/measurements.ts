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

type Figure = () => Promise<unknown>;
type Measured<Each extends Record<string, Figure>> = {
  readonly [Name in keyof Each]: Awaited<ReturnType<Each[Name]>> | null;
};

/** Measures each figure, one after the other. A figure that fails is null. Throws if all fail. */
export async function measureEach<Each extends Record<string, Figure>>(
  figures: Each,
  onProblem: MeasurementsOptions<never>['onProblem'],
): Promise<Measured<Each>> {
  const measured: Record<string, unknown> = {};
  const errors: unknown[] = [];
  for (const [name, measure] of Object.entries(figures))
    try {
      measured[name] = await measure();
    } catch (error) {
      measured[name] = null;
      errors.push(error);
    }
  if (errors.length > 0 && errors.length === Object.keys(figures).length) throw errors[0];
  for (const error of errors) onProblem('measure a figure for the metrics', error);
  return measured as Measured<Each>;
}
