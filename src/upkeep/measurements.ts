/** Takes figures that cost a query now and then, so that whoever asks for them gets the last ones at once. */
import type { Clock } from '../domain/clock.ts';

export interface MeasurementsOptions<Figures> {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly measure: () => Promise<Figures>;
  readonly problem: (what: string, error: unknown) => void;
}

export class Measurements<Figures> {
  readonly #options: MeasurementsOptions<Figures>;
  #latest: { readonly takenAt: number; readonly figures: Figures } | null = null;
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: MeasurementsOptions<Figures>) {
    this.#options = options;
  }

  /** Null: nothing has been measured yet. */
  get latest(): { readonly takenAt: number; readonly figures: Figures } | null {
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
    const { clock, measure, problem } = this.#options;
    try {
      const takenAt = clock.monotonic();
      this.#latest = { takenAt, figures: await measure() };
    } catch (error) {
      problem('measure what waits', error);
    }
  }
}
