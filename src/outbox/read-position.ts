/**
 * Decides where to start reading the outbox.
 *
 * Normally a read starts at the first row, which also finds rows of a transaction that took its numbers early and committed
 * late. But while an old snapshot keeps PostgreSQL from removing deleted rows, a read from the first row steps over all
 * of them. Then most reads start at the position of two seconds ago, and reads from the first row are so rare that they
 * take a twentieth of the time.
 */
export interface ReadPositionOptions {
  /** A read from the first row that takes longer than this is not repeated immediately. */
  readonly fastMs: number;
  readonly lookBackMs: number;
}

export interface OutboxReadResult {
  readonly afterSeq: string;
  readonly tookMs: number;
  /** The last row that was read. Null: none. */
  readonly lastSeq: string | null;
  readonly now: number;
}

/** Reads from the first row. */
export const FIRST = '0';
/** After a slow read from the first row, wait this many times as long before the next one. */
const FULL_READ_PAUSE_FACTOR = 20;

export class ReadPosition {
  readonly #options: ReadPositionOptions;
  readonly #positions: { readonly at: number; readonly seq: string }[] = [];
  #nextFullReadAt = 0;

  constructor(options: ReadPositionOptions = { fastMs: 10, lookBackMs: 2_000 }) {
    this.#options = options;
  }

  afterSeq(now: number): string {
    if (now >= this.#nextFullReadAt) return FIRST;
    let seq = FIRST;
    for (const mark of this.#positions) {
      if (mark.at > now - this.#options.lookBackMs) break;
      seq = mark.seq;
    }
    return seq;
  }

  recordRead({ afterSeq, tookMs, lastSeq, now }: OutboxReadResult): void {
    if (afterSeq === FIRST) {
      this.#nextFullReadAt = tookMs > this.#options.fastMs ? now + tookMs * FULL_READ_PAUSE_FACTOR : 0;
    }
    if (lastSeq === null) return;
    const highest = this.#positions.at(-1);
    if (highest !== undefined && BigInt(lastSeq) <= BigInt(highest.seq)) return;
    this.#positions.push({ at: now, seq: lastSeq });
    while (this.#positions.length > 2 && this.#positions[1]!.at <= now - this.#options.lookBackMs)
      this.#positions.shift();
  }
}
