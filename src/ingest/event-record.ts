/** Turns a pending event and its matched endpoints into the record that the accept log stores. */
import type { Endpoint } from '../domain/endpoint.ts';
import type { UnmatchedReason } from '../domain/event.ts';
import { deliveryIdOf, timeOfId } from '../domain/ids.ts';
import { delayMsBefore } from '../domain/retry.ts';
import type { EventRecord, NewDelivery, SkippedDelivery } from '../ports/accept-log.ts';
import type { LostKey, PendingEvent } from './pending-event.ts';

/** The age of a committed event that waited longer than this begins now, so that it does not expire before it is sent. */
const LATE_AFTER_MS = 60_000;

/** `unmatchedReason` is null if at least one of the endpoints is enabled, or if the event is a duplicate. */
export function toRecord(
  item: PendingEvent,
  endpoints: readonly Endpoint[],
  unmatchedReason: UnmatchedReason | null,
  now: number,
  random: () => number,
): EventRecord {
  const { event, id, fingerprint } = item;
  const deliveries: NewDelivery[] = [];
  const skipped: SkippedDelivery[] = [];
  for (const [ordinal, endpoint] of endpoints.entries()) {
    const delivery = { id: deliveryIdOf(id, ordinal), endpointId: endpoint.id };
    if (!endpoint.enabled) {
      skipped.push(delivery);
      continue;
    }
    const dueAt = firstDueAt(item, endpoint, now, random);
    deliveries.push({ ...delivery, dueAt, fifo: endpoint.ordering === 'fifo' });
  }
  return {
    id,
    tenant: event.tenant,
    type: event.type,
    data: event.data,
    idempotencyKey: event.idempotencyKey,
    fingerprint,
    options: storedOptions(item, unmatchedReason, skipped.length),
    deliveries,
    skipped,
  };
}

function firstDueAt(
  { event, id, committed }: PendingEvent,
  endpoint: Endpoint,
  now: number,
  random: () => number,
): number | null {
  const delayMs = delayMsBefore(endpoint.retry, 1, random);
  // A FIFO endpoint sends in the order of acceptance and ignores `deliver_at`. (A request that names a FIFO endpoint
  // together with `deliver_at` was rejected before; this one matched by its subscription.)
  if (event.deliverAt !== null && event.deliverAt > now && endpoint.ordering !== 'fifo')
    return event.deliverAt + delayMs;
  if (delayMs > 0) return now + delayMs;
  return committed !== null && now - timeOfId(id) > LATE_AFTER_MS ? now : null;
}

function storedOptions(
  { event, committed }: PendingEvent,
  unmatchedReason: UnmatchedReason | null,
  skipped: number,
): Record<string, unknown> | null {
  const lostKey = committed?.lostKey ?? null;
  const options: Record<string, unknown> = lostKey === null ? {} : lostKeyOptions(lostKey);
  if (event.channels.length > 0) options.channels = event.channels;
  if (event.headers !== null) options.headers = event.headers;
  if (event.schemaVersion !== null) options.schema_version = event.schemaVersion;
  if (event.endpointIds !== null) options.endpoint_ids = event.endpointIds;
  if (event.deliverAt !== null) options.deliver_at = event.deliverAt;
  if (unmatchedReason !== null) options.unmatched_reason = unmatchedReason;
  if (skipped > 0) options.skipped = skipped;
  return Object.keys(options).length === 0 ? null : options;
}

function lostKeyOptions({ key, holderId, sameContent }: LostKey): Record<string, unknown> {
  return { lost_key: key, [sameContent ? 'duplicate_of' : 'key_conflict_with']: holderId };
}
