import type { Kind } from './lane.ts';

/**
 * The sockets of this process. Fresh and retry work have shares of their own: retries never use more than theirs, and
 * a tenth is always left for them. The last quarter of all is for lanes that have shown no sign of trouble.
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

  /** So full that only lanes beyond suspicion get more. */
  get crowded(): boolean {
    return this.total >= this.#max * 0.75;
  }
}
