import type { Clock } from '../domain/clock.ts';

/** Runs `work` again and again, with a pause before each round. Rounds never overlap, and none starts after `stop`. */
export abstract class Recurring {
  readonly #clock: Clock;
  #cancel: (() => void) | null = null;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** The pause before the next round. A round may change it. */
  protected pauseMs: number;

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.pauseMs = everyMs;
  }

  /** One round. It must not throw, and should end early once `isStopped` is true. */
  protected abstract work(): Promise<void>;

  protected get isStopped(): boolean {
    return this.#isStopped;
  }

  start(): void {
    if (this.#isStopped || this.#cancel !== null) return;
    this.#cancel = this.#clock.after(this.pauseMs, () => {
      this.#running = this.work().finally(() => {
        this.#cancel = null;
        this.start();
      });
    });
  }

  /** Resolves when the current round has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#running;
  }
}
