/** Turns a pending event and its matched endpoints into the record that the accept log stores. */
import type { Endpoint } from '../domain/endpoint.ts';
import { deliveryIdOf, timeOfId, type Uuid } from '../domain/ids.ts';
import { delayMsBefore } from '../domain/retry.ts';
import type { EventRecord, UnwrittenDeliveries } from '../ports/accept-log.ts';
import type { LostKey, PendingEvent } from './pending-event.ts';

/** The age of a committed event that waited longer than this begins now, so that it does not expire before it is sent. */
const LATE_AFTER_MS = 60_000;

export interface RecordContext {
  readonly now: number;
  readonly random: () => number;
  /** An event with more deliveries is sliced: the others are written by later commits. */
  readonly deliveriesPerCommit: number;
}

export function toRecord(
  item: PendingEvent,
  matched: readonly Endpoint[],
  { now, random, deliveriesPerCommit }: RecordContext,
): EventRecord {
  const { event, id, fingerprint, committed } = item;
  const isSliced = matched.length > deliveriesPerCommit;
  const ordered = isSliced ? fifoFirst(matched) : matched;
  const endpoints = isSliced ? ordered.slice(0, deliveriesPerCommit) : ordered;
  const start = { deliverAt: event.deliverAt, isLate: committed !== null && isLate(id, now) };
  return {
    id,
    tenant: event.tenant,
    type: event.type,
    data: event.data,
    idempotencyKey: event.idempotencyKey,
    fingerprint,
    options: storedOptions(item),
    deliveries: endpoints.map((endpoint, ordinal) => ({
      id: deliveryIdOf(id, ordinal),
      endpointId: endpoint.id,
      dueAt: firstDueAt(start, endpoint, now, random),
      fifo: isFifo(endpoint),
    })),
    unwritten: isSliced
      ? { slices: toSlices(ordered, deliveriesPerCommit), deliverAt: event.deliverAt }
      : undefined,
  };
}

const isFifo = ({ ordering }: Endpoint): boolean => ordering === 'fifo';

/** FIFO deliveries that are written later hold back their lanes. If they come first, there are usually none. */
const fifoFirst = (endpoints: readonly Endpoint[]): readonly Endpoint[] =>
  endpoints.some(isFifo)
    ? [...endpoints.filter(isFifo), ...endpoints.filter((endpoint) => !isFifo(endpoint))]
    : endpoints;

/** Half of what a commit may hold: nobody waits for these commits, and they should delay others even less. */
export const sliceRowsOf = (deliveriesPerCommit: number): number => Math.ceil(deliveriesPerCommit / 2);

function toSlices(
  endpoints: readonly Endpoint[],
  deliveriesPerCommit: number,
): UnwrittenDeliveries['slices'] {
  const size = sliceRowsOf(deliveriesPerCommit);
  const slices: { endpointIds: Uuid[]; hasFifo: boolean }[] = [];
  for (let first = deliveriesPerCommit; first < endpoints.length; first += size) {
    const part = endpoints.slice(first, first + size);
    slices.push({ endpointIds: part.map(({ id }) => id), hasFifo: part.some(isFifo) });
  }
  return slices;
}

/** True if the age of a delivery that is written now must not begin with the time in the event's id. */
export const isLate = (eventId: Uuid, now: number): boolean => now - timeOfId(eventId) > LATE_AFTER_MS;

/** When to send a new delivery first. Null: as soon as possible, and its age begins with the time in its id. */
export function firstDueAt(
  { deliverAt, isLate }: { readonly deliverAt: number | null; readonly isLate: boolean },
  endpoint: Endpoint,
  now: number,
  random: () => number,
): number | null {
  const delayMs = delayMsBefore(endpoint.retry, 1, random);
  // A FIFO endpoint sends in the order of acceptance and ignores `deliver_at`. (A request that names a FIFO endpoint
  // together with `deliver_at` was rejected before; this one matched by its subscription.)
  if (deliverAt !== null && deliverAt > now && !isFifo(endpoint)) return deliverAt + delayMs;
  if (delayMs > 0) return now + delayMs;
  return isLate ? now : null;
}

function storedOptions({ event, committed }: PendingEvent): Record<string, unknown> | null {
  const lostKey = committed?.lostKey ?? null;
  const options: Record<string, unknown> = lostKey === null ? {} : lostKeyOptions(lostKey);
  if (event.channels.length > 0) options.channels = event.channels;
  if (event.headers !== null) options.headers = event.headers;
  if (event.schemaVersion !== null) options.schema_version = event.schemaVersion;
  if (event.endpointIds !== null) options.endpoint_ids = event.endpointIds;
  if (event.deliverAt !== null) options.deliver_at = event.deliverAt;
  return Object.keys(options).length === 0 ? null : options;
}

function lostKeyOptions({ key, holderId, sameContent }: LostKey): Record<string, unknown> {
  return { lost_key: key, [sameContent ? 'duplicate_of' : 'key_conflict_with']: holderId };
}
