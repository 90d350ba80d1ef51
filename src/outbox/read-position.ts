/**
 * Decides where to start reading the outbox.
 *
 * Normally at the bottom: a transaction that took its number early and committed late is then found at once. But while
 * an old snapshot keeps PostgreSQL from cleaning up deleted rows, each read from the bottom steps over all of them.
 * Most reads then start where reading had arrived two seconds ago, and reads from the bottom are spaced so that they
 * take a twentieth of the time.
 */
export interface ReadPositionOptions {
  /** A read from the bottom that takes longer than this is not repeated at once. */
  readonly cheapMs: number;
  readonly lookBackMs: number;
}

export interface OutboxReadResult {
  readonly afterSeq: string;
  readonly tookMs: number;
  /** The last row that was read. Null: none. */
  readonly lastSeq: string | null;
  readonly now: number;
}

const BOTTOM = '0';
/** After a slow read from the bottom, wait this many times as long before the next one. */
const BOTTOM_PAUSE_FACTOR = 20;

export class ReadPosition {
  readonly #options: ReadPositionOptions;
  readonly #reached: { readonly at: number; readonly seq: string }[] = [];
  #nextBottomAt = 0;

  constructor(options: ReadPositionOptions = { cheapMs: 10, lookBackMs: 2_000 }) {
    this.#options = options;
  }

  afterSeq(now: number): string {
    if (now >= this.#nextBottomAt) return BOTTOM;
    let seq = BOTTOM;
    for (const mark of this.#reached) {
      if (mark.at > now - this.#options.lookBackMs) break;
      seq = mark.seq;
    }
    return seq;
  }

  recordRead({ afterSeq, tookMs, lastSeq, now }: OutboxReadResult): void {
    if (afterSeq === BOTTOM) {
      this.#nextBottomAt = tookMs > this.#options.cheapMs ? now + tookMs * BOTTOM_PAUSE_FACTOR : 0;
    }
    if (lastSeq === null) return;
    const highest = this.#reached.at(-1);
    if (highest !== undefined && BigInt(lastSeq) <= BigInt(highest.seq)) return;
    this.#reached.push({ at: now, seq: lastSeq });
    while (this.#reached.length > 2 && this.#reached[1]!.at <= now - this.#options.lookBackMs)
      this.#reached.shift();
  }
}
