import type { Clock } from '../domain/clock.ts';
import { Heap } from '../domain/heap.ts';
import type { Lane } from './lane.ts';

const newHeap = () => new Heap<{ at: number; lane: Lane }>((a, b) => a.at < b.at);

/** One timer for all lanes: calls `onTime` for each lane at its time. Setting an earlier time replaces a later one. */
export class Alarms {
  readonly #clock: Clock;
  readonly #onTime: (lane: Lane) => void;
  #heap = newHeap();
  readonly #times = new Map<Lane, number>();
  #cancel: (() => void) | null = null;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onTime: (lane: Lane) => void) {
    this.#clock = clock;
    this.#onTime = onTime;
  }

  set(lane: Lane, at: number): void {
    const before = this.#times.get(lane);
    if (before !== undefined && before <= at) return;
    this.#times.set(lane, at);
    this.#heap.push({ at, lane });
    this.#compact();
    this.#startTimer();
  }

  /** Replaced times stay in the heap until they are due. Rebuild the heap when there are too many. */
  #compact(): void {
    if (this.#heap.size <= 2 * this.#times.size + 64) return;
    this.#heap = newHeap();
    for (const [lane, at] of this.#times) this.#heap.push({ at, lane });
  }

  forget(lane: Lane): void {
    this.#times.delete(lane);
  }

  /** Moves all times after the clock was set by `stepMs`. Otherwise a timer for an old time would keep new alarms from ringing. */
  onClockStepped(stepMs: number): void {
    for (const [lane, at] of this.#times) this.#times.set(lane, at + stepMs);
    this.#heap = newHeap();
    for (const [lane, at] of this.#times) this.#heap.push({ at, lane });
    this.#stopTimer();
    this.#startTimer();
  }

  stop(): void {
    this.#stopTimer();
    this.#times.clear();
    this.#heap = newHeap();
  }

  #stopTimer(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #startTimer(): void {
    const next = this.#heap.peek();
    if (next === undefined || next.at >= this.#timerAt) return;
    this.#cancel?.();
    this.#timerAt = next.at;
    // At least 1 ms: timers may fire early, and the lane then sets its alarm for the same time again.
    const delayMs = Math.max(1, Math.min(next.at - this.#clock.now(), 60_000));
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#ringDue();
    });
  }

  #ringDue(): void {
    const now = this.#clock.now();
    for (;;) {
      const next = this.#heap.peek();
      if (next === undefined || next.at > now) break;
      this.#heap.pop();
      if (this.#times.get(next.lane) !== next.at) continue;
      this.#times.delete(next.lane);
      this.#onTime(next.lane);
    }
    this.#startTimer();
  }
}
