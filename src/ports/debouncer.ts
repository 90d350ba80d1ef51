/**
 * Debounce in the store (docs/shaping.md). All state is stored: the key of a delivery is written before the delivery
 * itself, and only waiting deliveries and the windows of mode `first` decide. No timer in memory counts.
 *
 *   last    waiting ──▶ newest of its key, window over ──▶ sent
 *              └──────▶ a newer one waits: skipped (debounced)
 *   first   waiting ──▶ opens the window ──▶ sent at once
 *              └──────▶ within a window: skipped (debounced), but the newest waits until the first one has ended
 */
import type { DebounceSettings } from '../domain/debounce.ts';
import type { Uuid } from '../domain/ids.ts';

export interface DebounceRequest {
  readonly deliveryId: Uuid;
  readonly endpointId: Uuid;
  readonly settings: DebounceSettings;
  readonly now: number;
  /** Other deliveries of the endpoint that are on the wire or not recorded yet. Of one key, only one is sent at a time. */
  readonly underWay: readonly Uuid[];
}

export interface DebounceDecision {
  /** `gone`: the delivery has ended, or is due later in the store, because another one of its key comes first. */
  readonly kind: 'send' | 'wait' | 'gone';
  /** Of `wait`: ask again then. */
  readonly until: number;
  /** Of `send`: how many deliveries it has superseded. */
  readonly debounced: number;
  /** Deliveries that this decision has ended as skipped, with the reason `debounced`. */
  readonly skipped: readonly Uuid[];
}

export interface Debouncer {
  /** Decides about a delivery that is due, and ends those that it supersedes, in one commit. */
  decideDebounce(request: DebounceRequest): Promise<DebounceDecision>;
}

export const SEND_AS_IT_IS: DebounceDecision = { kind: 'send', until: 0, debounced: 0, skipped: [] };
/** How long to wait for another delivery of the same key that is on the wire. */
export const DEBOUNCE_PAUSE_MS = 250;
/** Mode `first`: how long the newest superseded delivery waits after the first one is due. */
export const FIRST_PAUSE_MS = 500;
