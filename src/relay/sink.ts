/** What a relay brings, and where it puts it. */

export interface Incoming {
  /** The same whenever it is read again: the id of its row, or one made from its place in the log. */
  readonly id: string;
  /** When it was made, in milliseconds since 1970; the same whenever it is read again. NaN: nobody knows. */
  readonly madeAt: number;
  /** As `POST /v1/events` takes it. */
  readonly body: Buffer;
  /** A message may say itself by which id it wants to be known. */
  readonly mayCarryId: boolean;
  /** Why it is no event, where that is known without reading it. */
  readonly problem: string | null;
}

export type Fate =
  /** Posthorn has it: since now, or since an earlier time it was brought. */
  | { readonly kind: 'accepted'; readonly eventId: string }
  /** Not an event, and never will be as it is. Written down, so that it can be found. */
  | { readonly kind: 'rejected'; readonly problem: string };

export interface Sink {
  /** Resolves when all of it is durable. Throws if Posthorn cannot take it just now: then nothing is known. */
  accept(items: readonly Incoming[]): Promise<readonly Fate[]>;
}

/** What has been done since it was last asked for. */
export class Tally {
  #accepted = 0;
  #rejected = 0;

  count(fates: readonly Fate[]): void {
    for (const { kind } of fates) {
      if (kind === 'accepted') this.#accepted += 1;
      else this.#rejected += 1;
    }
  }

  take(): { readonly accepted: number; readonly rejected: number } {
    const taken = { accepted: this.#accepted, rejected: this.#rejected };
    this.#accepted = 0;
    this.#rejected = 0;
    return taken;
  }
}
