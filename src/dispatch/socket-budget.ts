import type { Kind } from './lane.ts';

/**
 * Divides the sockets of this process. Retries use at most their share, and fresh deliveries leave a tenth to them. The
 * last quarter is for the first request of each lane and for lanes without signs of trouble, the last fifth only for the
 * latter.
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

  /** True if a socket is free for this kind. */
  hasFree(kind: Kind): boolean {
    return this.total < this.#max && this.inFlight[kind] < this.#maxOf[kind];
  }

  /** True if only lanes without signs of trouble may get a socket. Fresh deliveries can use half of the rest. */
  get isNearlyFull(): boolean {
    return this.total >= this.#max * 0.8;
  }

  /** True if a lane with signs of trouble may have no more than one socket. */
  get isCrowded(): boolean {
    return this.total >= this.#max * 0.75;
  }
}
