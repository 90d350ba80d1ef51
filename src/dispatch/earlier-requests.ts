import type { Uuid } from '../domain/ids.ts';

/**
 * Requests that an earlier owner of the lane may still have on the wire. Until its deadline each of them takes one of
 * the endpoint's `max_in_flight` places.
 */
export class EarlierRequests {
  /** Null: there never were any, as in most lanes. */
  #deadlines: Map<Uuid, number> | null = null;

  add(deliveryId: Uuid, deadline: number): void {
    this.#deadlines ??= new Map();
    this.#deadlines.set(deliveryId, deadline);
  }

  onClockStepped(stepMs: number): void {
    for (const [id, deadline] of this.#deadlines ?? []) this.#deadlines!.set(id, deadline + stepMs);
  }

  /** Returns when one of `limit` places is free, given that `inFlight` requests of this worker are on the wire. */
  placeFreeAt(now: number, inFlight: number, limit: number): number {
    if (this.#deadlines === null || this.#deadlines.size === 0) return now;
    for (const [id, deadline] of this.#deadlines) if (deadline <= now) this.#deadlines.delete(id);
    const excess = inFlight + this.#deadlines.size - limit;
    if (excess < 0) return now;
    return [...this.#deadlines.values()].sort((a, b) => a - b)[excess] ?? now;
  }
}
