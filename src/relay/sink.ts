/** The items that a relay reads from its source, and the sink that stores them. */

export interface Incoming {
  /** Stays the same when it is read again: the id of its row, or an id made from its position in the log. */
  readonly id: string;
  /** When it was created, in milliseconds since 1970. Stays the same when it is read again. NaN: unknown. */
  readonly createdAt: number;
  /** A body for `POST /v1/events`. */
  readonly body: Buffer;
  /** A log message may contain the event's `id`; a row has an id of its own. */
  readonly mayCarryId: boolean;
  /** Why it cannot be an event, if that is known without reading the body. */
  readonly problem: string | null;
}

export type SinkResult =
  /** Posthorn has the event, from this call or from an earlier one. */
  | { readonly kind: 'accepted'; readonly eventId: string }
  /** It cannot become an event. It is recorded with the reason. */
  | { readonly kind: 'rejected'; readonly problem: string };

export interface Sink {
  /**
   * Resolves when all items are durable, with one result per item. Throws if Posthorn cannot take them now: some may
   * be stored, so the caller must pass the same items again.
   */
  accept(items: readonly Incoming[]): Promise<readonly SinkResult[]>;
}

/** Counts results between two reports. */
export class Tally {
  #accepted = 0;
  #rejected = 0;

  count(results: readonly SinkResult[]): void {
    for (const { kind } of results) {
      if (kind === 'accepted') this.#accepted += 1;
      else this.#rejected += 1;
    }
  }

  /** Returns the counts and starts again from zero. */
  take(): { readonly accepted: number; readonly rejected: number } {
    const taken = { accepted: this.#accepted, rejected: this.#rejected };
    this.#accepted = 0;
    this.#rejected = 0;
    return taken;
  }
}
