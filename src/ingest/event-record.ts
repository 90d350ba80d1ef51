/** Turns pending events and their matched endpoints into the records that the event store writes. */
import { setImmediate } from 'node:timers/promises';
import { DebounceKeys, debounceWindowOf } from '../domain/debounce.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { UnmatchedReason } from '../domain/event.ts';
import { deliveryIdOf, timeOfId, type Uuid } from '../domain/ids.ts';
import { delayMsBefore } from '../domain/retry.ts';
import type {
  EventRecord,
  NewDelivery,
  SkippedDelivery,
  UnwrittenDeliveries,
  UnwrittenSlice,
} from '../ports/event-store.ts';
import type { LostKey, PendingEvent } from './pending-event.ts';

/** If a committed event waited longer than this to be stored, its age begins now. Otherwise it could expire before it is sent. */
const LATE_AFTER_MS = 60_000;

export interface RecordContext {
  /** Null if at least one of the endpoints is enabled, or if the event is a duplicate. */
  readonly unmatchedReason: UnmatchedReason | null;
  readonly now: number;
  readonly random: () => number;
  /** If an event has more deliveries, later commits write the others. */
  readonly deliveriesPerCommit: number;
}

/** The keys of debounce are read from payloads. After some ten milliseconds of that, the loop yields to others. */
const PARSED_BYTES_PER_TURN = 256 * 1024;

/** Makes the record of each event of a batch. */
export async function toRecords(
  batch: readonly PendingEvent[],
  matched: readonly (readonly Endpoint[])[],
  makeRecord: (item: PendingEvent, matched: readonly Endpoint[]) => EventRecord,
): Promise<EventRecord[]> {
  const records: EventRecord[] = [];
  let parsedBytes = 0;
  for (const [index, item] of batch.entries()) {
    records.push(makeRecord(item, matched[index]!));
    if (matched[index]!.some(({ debounce }) => debounce !== null)) parsedBytes += item.event.data.length;
    if (parsedBytes < PARSED_BYTES_PER_TURN) continue;
    parsedBytes = 0;
    await setImmediate();
  }
  return records;
}

/** `matched`: enabled endpoints first. */
export function toRecord(
  item: PendingEvent,
  matched: readonly Endpoint[],
  context: RecordContext,
): EventRecord {
  const { event, id, fingerprint, committed } = item;
  const { unmatchedReason, now, random, deliveriesPerCommit } = context;
  const isSliced = matched.length > deliveriesPerCommit;
  const { first, slices } = isSliced ? slice(matched, deliveriesPerCommit) : { first: matched, slices: [] };
  const start = { deliverAt: event.deliverAt, isLate: committed !== null && isLate(id, now) };
  const deliveries: NewDelivery[] = [];
  const skipped: SkippedDelivery[] = [];
  let keys: DebounceKeys | null = null;
  for (const [ordinal, endpoint] of first.entries()) {
    const delivery = { id: deliveryIdOf(id, ordinal), endpointId: endpoint.id };
    if (endpoint.enabled) {
      const dueAt = firstDueAt(start, endpoint, now, random);
      const waiting = { ...delivery, dueAt, fifo: isFifo(endpoint) };
      if (endpoint.debounce !== null) keys ??= new DebounceKeys(event.data);
      deliveries.push(keys === null ? waiting : addDebounceKey(waiting, endpoint.debounce, keys, now));
    } else skipped.push(delivery);
  }
  const skippedLater = slices.reduce((n, each) => (each.wasDisabled ? n + each.endpointIds.length : n), 0);
  return {
    id,
    tenant: event.tenant,
    type: event.type,
    data: event.data,
    idempotencyKey: event.idempotencyKey,
    fingerprint,
    options: storedOptions(item, unmatchedReason, skipped.length + skippedLater),
    deliveries,
    skipped,
    unwritten: isSliced ? { slices, deliverAt: event.deliverAt } : undefined,
  };
}

/** Adds the debounce key to a delivery, which then waits for the window to end (mode `last`). */
export function addDebounceKey(
  delivery: NewDelivery,
  settings: Endpoint['debounce'],
  keys: DebounceKeys,
  now: number,
): NewDelivery {
  if (settings === null) return delivery;
  const debounceKey = keys.keyOf(settings);
  if (debounceKey === null) return delivery;
  const windowEnd = settings.mode === 'last' ? now + debounceWindowOf(settings, debounceKey) : null;
  const dueAt = windowEnd === null ? delivery.dueAt : Math.max(delivery.dueAt ?? 0, windowEnd);
  return { ...delivery, dueAt, debounceKey };
}

const isFifo = ({ ordering }: Endpoint): boolean => ordering === 'fifo';

/** A quarter of what a commit may hold: no request waits for slices, so they must not delay requests. At least two, to halve them. */
export const sliceRowsOf = (deliveriesPerCommit: number): number =>
  Math.max(2, Math.ceil(deliveriesPerCommit / 4));

interface Sliced {
  /** Enabled endpoints whose deliveries are written with the event. */
  readonly first: readonly Endpoint[];
  readonly slices: UnwrittenDeliveries['slices'];
}

/**
 * The first commit writes as many deliveries as a slice has, so that other tenants need not wait long for it. It writes more only if they
 * are FIFO: FIFO deliveries that are written later hold back their lanes. Reads each endpoint once, because an event may have 100,000.
 */
function slice(endpoints: readonly Endpoint[], deliveriesPerCommit: number): Sliced {
  const fifo: Endpoint[] = [];
  const unordered: Endpoint[] = [];
  const disabled: Uuid[] = [];
  for (const endpoint of endpoints) {
    if (!endpoint.enabled) disabled.push(endpoint.id);
    else if (isFifo(endpoint)) fifo.push(endpoint);
    else unordered.push(endpoint);
  }
  const size = sliceRowsOf(deliveriesPerCommit);
  const firstFifo = Math.min(fifo.length, deliveriesPerCommit);
  const firstUnordered = Math.max(0, size - firstFifo);
  const slices: UnwrittenSlice[] = [];
  const addSlices = (ids: readonly Uuid[], options: Omit<UnwrittenSlice, 'endpointIds'>): void => {
    for (let first = 0; first < ids.length; first += size)
      slices.push({ endpointIds: ids.slice(first, first + size), ...options });
  };
  addSlices(idsOf(fifo, firstFifo), { hasFifo: true, wasDisabled: false });
  addSlices(idsOf(unordered, firstUnordered), { hasFifo: false, wasDisabled: false });
  addSlices(disabled, { hasFifo: false, wasDisabled: true });
  return { first: [...fifo.slice(0, firstFifo), ...unordered.slice(0, firstUnordered)], slices };
}

const idsOf = (endpoints: readonly Endpoint[], from: number): Uuid[] => {
  const ids: Uuid[] = [];
  for (let index = from; index < endpoints.length; index += 1) ids.push(endpoints[index]!.id);
  return ids;
};

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
  if (event.schemaErrors !== undefined) options.schema_errors = event.schemaErrors;
  if (event.endpointIds !== null) options.endpoint_ids = event.endpointIds;
  if (event.deliverAt !== null) options.deliver_at = event.deliverAt;
  if (unmatchedReason !== null) options.unmatched_reason = unmatchedReason;
  if (skipped > 0) options.skipped = skipped;
  return Object.keys(options).length === 0 ? null : options;
}

function lostKeyOptions({ key, holderId, hasSameContent }: LostKey): Record<string, unknown> {
  return { lost_key: key, [hasSameContent ? 'duplicate_of' : 'key_conflict_with']: holderId };
}
