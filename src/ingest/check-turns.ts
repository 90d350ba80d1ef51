/**
 * Lets the process do other work between checks of payloads. A check is synchronous and takes up to some ten milliseconds, and
 * a request may contain a thousand events: measured, such a request blocked the process for three seconds. So after
 * `MAX_MS_PER_TURN` of checks, further ones wait for the next turn of the event loop. Tenants take turns, and the checks of a
 * tenant keep their order.
 */
import type { Clock } from '../domain/clock.ts';

const MAX_MS_PER_TURN = 20;

export class CheckTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** By tenant, in the order of their turns. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #usedMs = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Runs the check at once, or returns a promise if it must wait. */
  run<T>(tenant: string, check: () => T): T | Promise<T> {
    if (this.#usedMs < MAX_MS_PER_TURN) return this.#measure(check);
    return new Promise((resolve, reject) => {
      const start = (): void => {
        try {
          resolve(this.#measure(check));
        } catch (error) {
          reject(error);
        }
      };
      const own = this.#waiting.get(tenant);
      if (own === undefined) this.#waiting.set(tenant, [start]);
      else own.push(start);
    });
  }

  #measure<T>(check: () => T): T {
    const startedAt = this.#clock.monotonic();
    try {
      return check();
    } finally {
      const wasUsedUp = this.#usedMs >= MAX_MS_PER_TURN;
      this.#usedMs += this.#clock.monotonic() - startedAt;
      if (!wasUsedUp && this.#usedMs >= MAX_MS_PER_TURN) setImmediate(() => this.#startTurn());
    }
  }

  #startTurn(): void {
    this.#usedMs = 0;
    for (const [tenant, checks] of this.#waiting) {
      if (this.#usedMs >= MAX_MS_PER_TURN) return;
      this.#waiting.delete(tenant);
      const check = checks.shift()!;
      if (checks.length > 0) this.#waiting.set(tenant, checks);
      check();
    }
  }
}
