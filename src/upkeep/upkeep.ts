import type { Clock } from '../domain/clock.ts';

/** Chores that are not on the way of any event: done now and then, by any process, harmless if done twice. */
export interface UpkeepOptions {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly makePartitions: () => Promise<void>;
  readonly problem: (what: string, error: unknown) => void;
}

export class Upkeep {
  readonly #options: UpkeepOptions;
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
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
    try {
      await this.#options.makePartitions();
    } catch (error) {
      this.#options.problem('make partitions ahead of time', error);
    }
  }
}
