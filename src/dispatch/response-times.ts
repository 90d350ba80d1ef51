/** How fast an endpoint answers. A slow endpoint takes sockets and memory for long, so both are rationed for it. */
import type { LaneItem } from './lane-item.ts';

/** An endpoint is slow if its last answer took longer than this, or if a request has been on the wire for longer. */
const SLOW_AFTER_MS = 1_000;

export class ResponseTimes {
  /** When each request on the wire was started, oldest first. Null: none was ever started. */
  #starts: Map<LaneItem, number> | null = null;
  #lastAnswerAt = Number.NEGATIVE_INFINITY;
  #lastDurationMs = Number.NaN;

  /** When the oldest request on the wire was started. Infinity: there is none. */
  get oldestStartAt(): number {
    for (const startedAt of this.#starts?.values() ?? []) return startedAt;
    return Number.POSITIVE_INFINITY;
  }

  recordStart(item: LaneItem, now: number): void {
    this.#starts ??= new Map();
    this.#starts.set(item, now);
  }

  /** Call this when the receiver has answered, before `recordEnd`. */
  recordAnswer(item: LaneItem, now: number): void {
    this.#lastDurationMs = now - (this.#starts?.get(item) ?? now);
    this.#lastAnswerAt = now;
  }

  recordEnd(item: LaneItem): void {
    this.#starts?.delete(item);
  }

  isSlow(now: number): boolean {
    return this.#lastDurationMs > SLOW_AFTER_MS || now - this.oldestStartAt > SLOW_AFTER_MS;
  }

  /** True if the last answer was fast, and none of the requests on the wire is older than it. */
  isKnownToBeFast(now: number): boolean {
    const { oldestStartAt } = this;
    const isProven = oldestStartAt === Number.POSITIVE_INFINITY || this.#lastAnswerAt >= oldestStartAt;
    return isProven && this.#lastDurationMs <= SLOW_AFTER_MS && !this.isSlow(now);
  }
}
