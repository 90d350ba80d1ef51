/** Search inside payloads. A request examines events for a limited time, and then says by its cursor how far it came. */
import type { Clock } from '../../domain/clock.ts';
import { type ParsedSearch, type PayloadSearch, parsePayloadSearch } from '../../domain/payload-search.ts';
import { Problem } from '../../domain/problem.ts';
import type { Pool } from '../../postgres/database.ts';
import type { EventFilter, EventView, EventWithData } from '../../postgres/queries/events.ts';
import type { ListResult } from '../../postgres/queries/list-query.ts';
import { examinePayloads } from '../../postgres/queries/search-events.ts';

/** A request stops after this time, or after this many events, whichever comes first. */
const BUDGET_MS = 1_000;
export const MAX_EXAMINED_PAYLOADS = 100_000;
/** A statement examines more events as long as it takes less than this. Large payloads keep it small. */
const QUICK_MS = 100;
const FIRST_CHUNK = 250;
const MAX_CHUNK = 8_000;
/** The searches of a process that run at the same time. Others wait, so that they leave connections to other requests. */
const MAX_RUNNING = 2;

/** Throws `invalid` if `where` is not a path and a value. */
export function readWhere(where: string | undefined): PayloadSearch | null {
  if (where === undefined) return null;
  const parsed: ParsedSearch = parsePayloadSearch(where);
  if (parsed.ok) return parsed.search;
  throw new Problem('invalid', `where: ${parsed.message}.`, {
    errors: [{ path: 'where', message: parsed.message }],
  });
}

let running = 0;
const waiting: (() => void)[] = [];

async function takeTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= MAX_RUNNING) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    return await work();
  } finally {
    // The next one takes over this turn.
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}

/** Finds events whose data has the value, newest first: up to `limit`. */
export function searchPayloads(
  pool: Pool,
  clock: Clock,
  filter: EventFilter,
  search: PayloadSearch,
): Promise<ListResult<EventView>> {
  return takeTurn(async () => {
    const endsAt = clock.monotonic() + BUDGET_MS;
    const rows: EventView[] = [];
    let { before } = filter;
    let chunk = FIRST_CHUNK;
    for (let examined = 0; ; ) {
      const startedAt = clock.monotonic();
      const found = await examinePayloads(pool, { ...filter, before, limit: chunk }, search.needles);
      rows.push(...(await selectMatching(found.candidates, search)));
      if (found.examined < chunk) return { rows: rows.slice(0, filter.limit), resumeAt: null };
      examined += found.examined;
      before = found.reachedId;
      if (rows.length >= filter.limit) return { rows: rows.slice(0, filter.limit), resumeAt: null };
      if (clock.monotonic() >= endsAt || examined >= MAX_EXAMINED_PAYLOADS) return { rows, resumeAt: before };
      if (clock.monotonic() - startedAt < QUICK_MS) chunk = Math.min(2 * chunk, MAX_CHUNK);
    }
  });
}

const PARSED_BYTES_PER_TURN = 1_000_000;

/** Parses the candidates. Lets other requests proceed after each megabyte. */
export async function selectMatching(
  candidates: readonly EventWithData[],
  search: PayloadSearch,
): Promise<EventView[]> {
  const matching: EventView[] = [];
  let bytes = 0;
  for (const { data, ...event } of candidates) {
    if (data === null) continue;
    if (search.matches(data)) matching.push(event);
    bytes += data.length;
    if (bytes < PARSED_BYTES_PER_TURN) continue;
    bytes = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return matching;
}
