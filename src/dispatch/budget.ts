import type { Kind } from './lane.ts';

/**
 * Shares out the sockets of this process. Retries use at most their share, and fresh deliveries leave a tenth for them.
 * The last quarter is for lanes without signs of trouble.
 */
export class SocketBudget {
  readonly #max: number;
  readonly #maxOf: Record<Kind, number>;
  readonly inFlight: Record<Kind, number> = { fresh: 0, retry: 0 };

  constructor(max: number, retryShare: number) {
    this.#max = max;
    this.#maxOf = {
      fresh: Math.max(1, Math.floor(max * 0.9)),
      retry: Math.max(1, Math.floor(max * retryShare)),
    };
  }

  get total(): number {
    return this.inFlight.fresh + this.inFlight.retry;
  }

  has(kind: Kind): boolean {
    return this.total < this.#max && this.inFlight[kind] < this.#maxOf[kind];
  }

  get nearlyFull(): boolean {
    return this.total >= this.#max * 0.9;
  }

  /** True if only lanes without signs of trouble may get a socket. */
  get crowded(): boolean {
    return this.total >= this.#max * 0.75;
  }
}
