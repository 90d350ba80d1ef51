/** Asks the store about deliveries of endpoints with `debounce` that are due (docs/shaping.md). */
import type { Clock } from '../domain/clock.ts';
import type { DebounceDecision, Debouncer } from '../ports/debouncer.ts';
import type { Lane, LaneItem } from './lane.ts';

export class DebounceDecisions {
  readonly #debouncer: Debouncer;
  readonly #clock: Pick<Clock, 'now'>;
  /** Deliveries that are taken from their lane but may still be superseded. */
  readonly #undecided = new Set<LaneItem>();

  constructor(debouncer: Debouncer, clock: Pick<Clock, 'now'>) {
    this.#debouncer = debouncer;
    this.#clock = clock;
  }

  async decide(lane: Lane, item: LaneItem): Promise<DebounceDecision> {
    this.#undecided.add(item);
    const underWay = lane.underWay.filter((other) => !this.#undecided.has(other));
    try {
      return await this.#debouncer.decideDebounce({
        deliveryId: item.delivery.id,
        endpointId: lane.id,
        settings: lane.endpoint.debounce!,
        now: this.#clock.now(),
        underWay: underWay.map(({ delivery }) => delivery.id),
      });
    } finally {
      this.#undecided.delete(item);
    }
  }
}
