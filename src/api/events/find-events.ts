import type { Clock } from '../../domain/clock.ts';
import type { DeliveryStatus } from '../../domain/delivery.ts';
import { DEFAULT_TENANT } from '../../domain/event.ts';
import { eventIdOfDelivery, type Uuid } from '../../domain/ids.ts';
import type { PayloadSearch } from '../../domain/payload-search.ts';
import type { Pool } from '../../postgres/database.ts';
import {
  type EventView,
  findEventsByKey,
  listEvents,
  loadEventViews,
} from '../../postgres/queries/events.ts';
import { listDeliveries } from '../../postgres/queries/list-deliveries.ts';
import type { IdRange, ListResult } from '../../postgres/queries/list-query.ts';
import { findCandidates } from '../../postgres/queries/search-events.ts';
import { searchPayloads, selectMatching } from './search-payloads.ts';

/** `waiting`: pending or retrying. `none`: the event was sent to no endpoint. */
export type HasDelivery = DeliveryStatus | 'waiting' | 'none';

export interface EventSearch extends IdRange {
  readonly tenant: string | null;
  readonly type: string | null;
  readonly idempotencyKey: string | null;
  /** With at least one delivery of this status. */
  readonly has: HasDelivery | null;
  /** With this value in the payload. */
  readonly where: PayloadSearch | null;
  readonly limit: number;
}

/** Finds events, newest first: up to `limit` and one more if there are more. With `where`, call it in `takeTurn`. */
export async function findEvents(
  pool: Pool,
  clock: Clock,
  search: EventSearch,
): Promise<ListResult<EventView>> {
  const { tenant, type, from, before, idempotencyKey, has, where, limit } = search;
  if (idempotencyKey !== null) {
    const holders = await findEventsByKey(pool, tenant, idempotencyKey, DEFAULT_TENANT);
    const matching = holders.filter(
      (event) =>
        (from === null || event.id >= from) &&
        (before === null || event.id < before) &&
        (type === null || event.type === type),
    );
    const rows = await keepMatching(pool, matching, where);
    return { rows: rows.slice(0, limit + 1), resumeAt: null };
  }
  if (has !== null && has !== 'none') {
    const { ids, resumeAt } = await findByDeliveries(pool, has, search);
    if (where === null) return { rows: await loadEventViews(pool, ids), resumeAt };
    // The page is full before its payloads are examined: the next one continues after the last event examined.
    const examined = ids.slice(0, limit);
    const rows = await keepMatching(pool, await loadEventViews(pool, examined), where);
    return { rows, resumeAt: ids.length > limit ? (examined.at(-1) ?? null) : resumeAt };
  }
  const filter = { tenant, type, from, before, unsent: has === 'none', limit: limit + 1 };
  return where === null ? listEvents(pool, filter) : searchPayloads(pool, clock, filter, where);
}

/** The events whose payload has the value. */
async function keepMatching(
  pool: Pool,
  events: readonly EventView[],
  where: PayloadSearch | null,
): Promise<EventView[]> {
  if (where === null) return [...events];
  const ids = events.map(({ id }) => id);
  return selectMatching(pool, await findCandidates(pool, ids, where.needles), where);
}

/** How many pages of deliveries to read for one page of events: an event may have thousands of deliveries. */
const MAX_PAGES = 8;

/** The ids of events that have a delivery of this status, newest first. */
async function findByDeliveries(
  pool: Pool,
  status: DeliveryStatus | 'waiting',
  { tenant, type, from, before, limit }: EventSearch,
): Promise<{ ids: Uuid[]; resumeAt: Uuid | null }> {
  const ids: Uuid[] = [];
  const filter = { tenant, endpointId: null, eventId: null, status, type, from };
  let end = before;
  for (let pages = 0; pages < MAX_PAGES && ids.length <= limit; pages += 1) {
    const { rows, resumeAt } = await listDeliveries(pool, { ...filter, before: end, limit: limit + 1 });
    for (const { id } of rows) if (ids.at(-1) !== eventIdOfDelivery(id)) ids.push(eventIdOfDelivery(id));
    const last = ids.at(-1) ?? null;
    if (rows.length <= limit) {
      // If the query stopped among the deliveries of the last event found, resume before that event: its remaining
      // deliveries would find it again.
      const isFound = resumeAt !== null && eventIdOfDelivery(resumeAt) === last;
      return { ids: ids.slice(0, limit + 1), resumeAt: isFound ? last : resumeAt };
    }
    // The id of an event is the smallest of its deliveries' ids, so this continues with older events.
    end = last;
  }
  return { ids: ids.slice(0, limit + 1), resumeAt: end };
}
