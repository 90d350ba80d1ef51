/**
 * Estimates how many requests `batch` or `debounce` would have made of events that were accepted in the past. Pure.
 *
 * The estimate assumes that the receiver answers at once, and that no request fails. While a receiver is slow or a rate
 * limit applies, more events wait, so batches are fuller and there are fewer requests.
 *
 * - Neither setting: one request per event.
 * - Batch: the oldest event opens a batch. The batch is sent when it has `maxEvents`, when the next event does not fit
 *   into `maxBytes`, or when the oldest event has waited for `maxWaitMs`.
 * - Debounce, `last`: events of a key form a group. Each event delays it to `windowMs` after itself, but not beyond
 *   `maxWaitMs` after the first. An event that comes later than that starts the next group. One request per group.
 * - Debounce, `first`: the first event of a key is sent, and others within `windowMs` after it are not.
 * - Debounce, an event without a key: one request.
 */
import { BATCH_FRAME_BYTES, type BatchSettings } from './batch.ts';
import type { DebounceSettings } from './debounce.ts';

export interface PastEvent {
  /** When it was accepted. */
  readonly at: number;
  /** An upper bound of its part of the body. */
  readonly bytes: number;
  /** Null: it has no value at the key of `debounce`. */
  readonly key: string | null;
}

export interface ShapingSettings {
  readonly batch: BatchSettings | null;
  readonly debounce: DebounceSettings | null;
}

/** Returns the number of requests for the events, which must be sorted by time, oldest first. */
export function countRequests(events: readonly PastEvent[], { batch, debounce }: ShapingSettings): number {
  if (batch !== null) return countBatches(events, batch);
  return debounce === null ? events.length : countDebounced(events, debounce);
}

function countBatches(
  events: readonly PastEvent[],
  { maxEvents, maxWaitMs, maxBytes }: BatchSettings,
): number {
  let requests = 0;
  let sentAt = 0;
  let size = 0;
  let bodyBytes = 0;
  for (const { at, bytes } of events) {
    const isOpen = size > 0 && size < maxEvents && at < sentAt && bodyBytes + bytes <= maxBytes;
    if (!isOpen) {
      requests += 1;
      sentAt = at + maxWaitMs;
      size = 0;
      bodyBytes = BATCH_FRAME_BYTES;
    }
    size += 1;
    bodyBytes += bytes;
  }
  return requests;
}

/** The newest group of a key: when it began, and until when another event belongs to it. */
interface Group {
  readonly since: number;
  readonly until: number;
}

function countDebounced(
  events: readonly PastEvent[],
  { windowMs, maxWaitMs, mode }: DebounceSettings,
): number {
  let requests = 0;
  const groups = new Map<string, Group>();
  for (const { at, key } of events) {
    const group = key === null ? undefined : groups.get(key);
    const joins = group !== undefined && at < group.until;
    if (!joins) requests += 1;
    if (key === null) continue;
    if (!joins) groups.set(key, { since: at, until: at + Math.min(windowMs, limitOf(mode, maxWaitMs)) });
    else if (mode === 'last')
      groups.set(key, { ...group, until: Math.min(at + windowMs, group.since + maxWaitMs) });
  }
  return requests;
}

/** `max_wait_ms` has no meaning in mode `first`. */
const limitOf = (mode: DebounceSettings['mode'], maxWaitMs: number): number =>
  mode === 'last' ? maxWaitMs : Number.POSITIVE_INFINITY;
