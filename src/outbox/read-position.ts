/**
 * Where to begin to read the outbox. From the bottom, as long as that is cheap: a transaction that took its number
 * early and committed late is then seen at once. But while somebody's old snapshot keeps deleted rows from being
 * cleaned up, each read from the bottom steps over all of them. Then most reads begin at what was reached two seconds
 * ago, and the bottom is looked at as often as costs a twentieth of the time.
 */
export interface ReadPositionOptions {
  /** A read from the bottom that takes longer is not repeated at once. */
  readonly cheapMs: number;
  readonly lookBackMs: number;
}

const BOTTOM = '0';
const SHARE_OF_BOTTOM_READS = 20;

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

  /** A read has ended: where it began, how long it took, the last row it brought, if any. */
  wasRead(afterSeq: string, tookMs: number, lastSeq: string | null, now: number): void {
    if (afterSeq === BOTTOM) {
      this.#nextBottomAt = tookMs > this.#options.cheapMs ? now + tookMs * SHARE_OF_BOTTOM_READS : 0;
    }
    if (lastSeq === null) return;
    const highest = this.#reached.at(-1);
    if (highest !== undefined && BigInt(lastSeq) <= BigInt(highest.seq)) return;
    this.#reached.push({ at: now, seq: lastSeq });
    while (this.#reached.length > 2 && this.#reached[1]!.at <= now - this.#options.lookBackMs)
      this.#reached.shift();
  }
}
