/**
 * Limits how much of the time the large commits of a path may take while other tenants publish: a pause follows each of them.
 *
 *   free ──tryBegin──▶ taken ──end──▶ pause: `factor` times as long as the commit took ──▶ free
 */
import type { Clock } from '../domain/clock.ts';

export interface CommitPaceOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>;
  /** 3: other tenants get three quarters of the time. */
  readonly factor: number;
}

/** Ends a turn. `leastFactor`: the factor if no other tenant has published. */
export type EndTurn = (leastFactor?: number) => void;

/** For commits that a request waits for. A longer pause would make requests of a tenant with many deliveries time out. */
export const REQUEST_FACTOR = 1;
/** For commits that nobody waits for. */
export const BACKGROUND_FACTOR = 3;
const MAX_PAUSE_MS = 1_000;

export class CommitPace {
  readonly #options: CommitPaceOptions;
  #isFree = true;
  /** True if other tenants have published since the last turn ended. */
  #hasOthers = false;
  #free = Promise.withResolvers<void>();

  constructor(options: CommitPaceOptions) {
    this.#options = options;
  }

  /** Call this when events of other tenants are written. */
  onSharedBatch(): void {
    this.#hasOthers = true;
  }

  /** Resolves when the turn may be free. */
  waitUntilFree(): Promise<void> {
    return this.#isFree ? Promise.resolve() : this.#free.promise;
  }

  /** Takes the turn. Returns null if it is not free. */
  tryBegin(): EndTurn | null {
    if (!this.#isFree) return null;
    this.#isFree = false;
    const { clock, factor } = this.#options;
    const startedAt = clock.monotonic();
    return (leastFactor = 0) => {
      const pauseFactor = this.#hasOthers ? factor : leastFactor;
      this.#hasOthers = false;
      const pauseMs = Math.min(pauseFactor * (clock.monotonic() - startedAt), MAX_PAUSE_MS);
      if (pauseMs > 0) clock.after(pauseMs, () => this.#release());
      else this.#release();
    };
  }

  #release(): void {
    const { resolve } = this.#free;
    this.#isFree = true;
    this.#free = Promise.withResolvers();
    resolve();
  }
}
