/** How fast an endpoint answers. A slow endpoint takes sockets and memory for long, so both are rationed for it. */
import { TurnoverMap } from '../domain/turnover-map.ts';
import type { LaneItem } from './lane-item.ts';

/** An endpoint is slow if its last answer took longer than this, or if a request has been on the wire for longer. */
const SLOW_AFTER_MS = 1_000;

export class ResponseTimes {
  /** When each request on the wire was started, oldest first. Null: none was ever started. */
  #starts: TurnoverMap<LaneItem, number> | null = null;
  // Null before the first one, because most lanes have none: V8 keeps each large number in an object of its own.
  #fullAt: number | null = null;
  #lastAnswerAt: number | null = null;
  #lastDurationMs: number | null = null;

  /** When the oldest request on the wire was started. Infinity: there is none. */
  get oldestStartAt(): number {
    for (const startedAt of this.#starts?.values() ?? []) return startedAt;
    return Number.POSITIVE_INFINITY;
  }

  /** `isFull`: whether the endpoint is now at its in-flight limit. */
  recordStart(item: LaneItem, now: number, isFull = false): void {
    this.#starts ??= new TurnoverMap();
    this.#starts.set(item, now);
    if (isFull) this.#fullAt = now;
  }

  /** When a request on the wire was started, and whether the endpoint has been at its in-flight limit since. */
  startOf(item: LaneItem): { readonly at: number; readonly wasFull: boolean } | null {
    const at = this.#starts?.get(item);
    return at === undefined ? null : { at, wasFull: this.#fullAt !== null && this.#fullAt >= at };
  }

  /** Call this when the receiver has answered, before `recordEnd`. */
  recordAnswer(item: LaneItem, now: number): void {
    this.#lastDurationMs = now - (this.#starts?.get(item) ?? now);
    this.#lastAnswerAt = now;
  }

  recordEnd(item: LaneItem): void {
    this.#starts?.delete(item);
  }

  onClockStepped(stepMs: number): void {
    for (const [item, startedAt] of this.#starts?.entries() ?? [])
      this.#starts!.set(item, startedAt + stepMs);
    if (this.#fullAt !== null) this.#fullAt += stepMs;
    if (this.#lastAnswerAt !== null) this.#lastAnswerAt += stepMs;
  }

  isSlow(now: number): boolean {
    return (this.#lastDurationMs ?? 0) > SLOW_AFTER_MS || now - this.oldestStartAt > SLOW_AFTER_MS;
  }

  /** True if the last answer was fast, and none of the requests on the wire is older than it. */
  isKnownToBeFast(now: number): boolean {
    if (this.#lastAnswerAt === null) return false;
    const { oldestStartAt } = this;
    const isProven = oldestStartAt === Number.POSITIVE_INFINITY || this.#lastAnswerAt >= oldestStartAt;
    return isProven && !this.isSlow(now);
  }
}
