/** Search inside payloads. A request examines events for a limited time. Its cursor says where the next one continues. */
import type { Clock } from '../../domain/clock.ts';
import { type ParsedSearch, type PayloadSearch, parsePayloadSearch } from '../../domain/payload-search.ts';
import { Problem } from '../../domain/problem.ts';
import type { Pool } from '../../postgres/database.ts';
import type { EventFilter, EventView } from '../../postgres/queries/events.ts';
import type { ListResult } from '../../postgres/queries/list-query.ts';
import { examinePayloads, type SizedEvent } from '../../postgres/queries/search-events.ts';
import { readPayloads } from './read-payloads.ts';

/** A request stops after this time, or after this many events, whichever comes first. */
const BUDGET_MS = 1_000;
export const MAX_EXAMINED_PAYLOADS = 100_000;
/** After a statement that takes less than this the next one examines twice as many events, otherwise half as many. */
const QUICK_MS = 100;
const MIN_CHUNK = 25;
const FIRST_CHUNK = 250;
const MAX_CHUNK = 8_000;

/** Throws `invalid` if `where` is not a path and a value. */
export function readWhere(where: string | undefined): PayloadSearch | null {
  if (where === undefined) return null;
  const parsed: ParsedSearch = parsePayloadSearch(where);
  if (parsed.ok) return parsed.search;
  throw new Problem('invalid', `where: ${parsed.message}.`, {
    errors: [{ path: 'where', message: parsed.message }],
  });
}

/** Finds events whose data has the value, newest first: up to `limit`. */
export async function searchPayloads(
  pool: Pool,
  clock: Clock,
  filter: EventFilter,
  search: PayloadSearch,
): Promise<ListResult<EventView>> {
  const endsAt = clock.monotonic() + BUDGET_MS;
  const rows: EventView[] = [];
  let { before } = filter;
  let chunk = FIRST_CHUNK;
  for (let examined = 0; ; ) {
    const startedAt = clock.monotonic();
    const found = await examinePayloads(pool, { ...filter, before, limit: chunk }, search.needles);
    const isQuick = clock.monotonic() - startedAt < QUICK_MS;
    for await (const { data, ...event } of readPayloads(pool, found.candidates)) {
      if (data !== null && search.matches(data)) rows.push(event);
      if (rows.length >= filter.limit) return { rows, resumeAt: null };
      if (clock.monotonic() >= endsAt) return { rows, resumeAt: event.id };
    }
    if (found.isEnd) return { rows, resumeAt: null };
    examined += found.examined;
    before = found.reachedId;
    if (clock.monotonic() >= endsAt || examined >= MAX_EXAMINED_PAYLOADS) return { rows, resumeAt: before };
    chunk = isQuick ? Math.min(2 * chunk, MAX_CHUNK) : Math.max(Math.floor(chunk / 2), MIN_CHUNK);
  }
}

/** Those of the candidates whose data has the value. */
export async function selectMatching(
  pool: Pool,
  candidates: readonly SizedEvent[],
  search: PayloadSearch,
): Promise<EventView[]> {
  const matching: EventView[] = [];
  for await (const { data, ...event } of readPayloads(pool, candidates))
    if (data !== null && search.matches(data)) matching.push(event);
  return matching;
}
