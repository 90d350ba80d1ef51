import type { Clock } from '../domain/clock.ts';

/** Work that is done again and again, with a pause before each round: never two at once, and none after `stop`. */
export abstract class Recurring {
  readonly #clock: Clock;
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;
  /** Before the next round. */
  protected pauseMs: number;

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.pauseMs = everyMs;
  }

  /** One round. It deals with its own failures, and ends early once it is `stopped`. */
  protected abstract work(): Promise<void>;

  protected get stopped(): boolean {
    return this.#stopped;
  }

  start(): void {
    if (this.#stopped || this.#cancel !== null) return;
    this.#cancel = this.#clock.after(this.pauseMs, () => {
      this.#running = this.work().finally(() => {
        this.#cancel = null;
        this.start();
      });
    });
  }

  /** Resolves when the round that runs has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#running;
  }
}
