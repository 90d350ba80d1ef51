/**
 * What a lane has learned from its requests. A lane extends this class instead of having an object of it: in a large deployment most
 * lanes are idle, and their history takes no memory before the first request.
 */
import { AdaptiveLimits } from '../domain/adaptive-limits.ts';
import type { LaneItem } from './lane-item.ts';
import { ResponseTimes } from './response-times.ts';
import { SlowStart } from './slow-start.ts';

/** Of lanes without a request so far. Nothing is ever recorded in it. */
const NO_RESPONSES = new ResponseTimes();

export abstract class LaneHistory {
  #responseTimes: ResponseTimes | null = null;
  #slowStart: SlowStart | null = null;
  #adaptive: AdaptiveLimits | null;

  constructor(adaptive: AdaptiveLimits | null) {
    this.#adaptive = adaptive;
  }

  get responseTimes(): Omit<ResponseTimes, 'recordStart'> {
    return this.#responseTimes ?? NO_RESPONSES;
  }

  get slowStart(): SlowStart {
    this.#slowStart ??= new SlowStart();
    return this.#slowStart;
  }

  get adaptive(): AdaptiveLimits {
    this.#adaptive ??= new AdaptiveLimits();
    return this.#adaptive;
  }

  /** How many requests the slow start allows. Infinity: there is none. */
  protected get slowStartWindow(): number {
    return this.#slowStart?.window ?? Number.POSITIVE_INFINITY;
  }

  /** How many requests the adaptive limits allow. Infinity: there are none. */
  protected get adaptiveLimit(): number {
    return this.#adaptive?.inFlightLimit ?? Number.POSITIVE_INFINITY;
  }

  protected recordStart(item: LaneItem, now: number, isFull: boolean): void {
    this.#responseTimes ??= new ResponseTimes();
    this.#responseTimes.recordStart(item, now, isFull);
  }

  protected resetAdaptive(): void {
    this.#adaptive?.reset();
  }
}
