/**
 * Debounce in the store (docs/shaping.md). All state is stored: the key of a delivery is written before the delivery
 * itself, and decisions depend only on waiting deliveries and on the windows of mode `first`. They depend on no timer in memory.
 *
 *   last    waiting ──▶ newest of its key, window or max_wait_ms over ──▶ started ──▶ sent
 *              │         └ not in `asked`: chosen; it is sent next, even if newer ones arrive
 *              └──────▶ a newer one is sent or chosen: skipped (debounced)
 *           If many wait, older ones end before the newest one is due. One of them stays, to ask again at `max_wait_ms`.
 *           A call ends at most `maxEnded` of them. If more wait, the newest one is chosen, and sent when no older one is left.
 *   first   waiting ──▶ opens the window ──▶ started ──▶ sent at once
 *              └──────▶ within a window: skipped (debounced), but the newest waits until the first one has ended
 *
 * The decision to send records the start of the request in the same commit. So a delivery that may be on the wire is never
 * ended as skipped, and no second request of its key is sent: neither by this worker, nor by one that takes the endpoint
 * over after a crash. The next owner waits for the deadline of the request, as for every recorded start.
 */
import type { DebounceSettings } from '../domain/debounce.ts';
import { timeOfId, type Uuid } from '../domain/ids.ts';

export interface DebounceRequest {
  readonly endpointId: Uuid;
  readonly settings: DebounceSettings;
  readonly now: number;
  /** Deliveries of the endpoint that are due and not on the wire. `attempts` is a fence: attempts made so far. */
  readonly asked: readonly { readonly id: Uuid; readonly attempts: number }[];
  /** Other deliveries of the endpoint that are on the wire or not recorded yet. Of one key, only one is sent at a time. */
  readonly underWay: readonly Uuid[];
  /** A request of an earlier owner may be on the wire for this long after its recorded start. Infinity: whenever it was. */
  readonly onWireMs: number;
  /** The call ends at most about this many deliveries. The next call continues. */
  readonly maxEnded: number;
}

export interface DebounceDecision {
  /** `drop`: the delivery has ended, or is due later in the store, because another one of its key comes first. */
  readonly kind: 'send' | 'wait' | 'drop';
  /** Of `wait`: when to ask again. */
  readonly until: number;
  /** Of `send`: how many deliveries it has superseded. */
  readonly debounced: number;
}

export interface DebounceDecisionSet {
  /** One for each delivery in `asked`. */
  readonly decisions: ReadonlyMap<Uuid, DebounceDecision>;
  /** Deliveries that were ended as skipped, with the reason `debounced`. */
  readonly skipped: readonly Uuid[];
}

export interface Debouncer {
  /**
   * Decides about deliveries that are due, records the start of those to be sent, and ends those that they supersede, in
   * one commit. Call it for one endpoint at a time: a second call might supersede what the first one sends.
   */
  decideDebounce(request: DebounceRequest): Promise<DebounceDecisionSet>;
}

/** For a delivery that has no key, or is a replay. Its start is not recorded. */
export const SEND_AS_IT_IS: DebounceDecision = { kind: 'send', until: 0, debounced: 0 };
export const DROP: DebounceDecision = { kind: 'drop', until: 0, debounced: 0 };
export const waitUntil = (until: number): DebounceDecision => ({ kind: 'wait', until, debounced: 0 });
/**
 * Mode `last`: older deliveries of a key wait until the newest one is sent, so that each ends once, in one statement. If more
 * than this many wait, they end in favour of the newest one so far: a flood must not fill the queue.
 */
export const MAX_GROUP = 100;
/** How many deliveries one call ends. About 50 ms of one connection: other endpoints need the connections, too. */
export const MAX_ENDED = 2_000;
/** How long to wait for another delivery of the same key that is on the wire. */
export const DEBOUNCE_PAUSE_MS = 250;
/** Mode `first`: how long the newest superseded delivery waits after the first one is due. */
export const FIRST_PAUSE_MS = 500;

/** Clocks of two processes may differ by seconds. */
const MAX_AHEAD_MS = 60_000;

/** When a delivery was accepted. 0: unknown, because its id is from a time at which the clock was ahead. */
export function acceptedAt(id: Uuid, now: number): number {
  const time = timeOfId(id);
  return time > now + MAX_AHEAD_MS ? 0 : time;
}

/** No window that was opened under a right clock ends later than this. */
export const latestWindowEnd = (windowMs: number, now: number): number => now + windowMs + MAX_AHEAD_MS;

/** Requests that were started after this time may be on the wire. 0: any request may be. */
export const onWireSince = ({ now, onWireMs }: Pick<DebounceRequest, 'now' | 'onWireMs'>): number =>
  onWireMs === Number.POSITIVE_INFINITY ? 0 : now - onWireMs;
