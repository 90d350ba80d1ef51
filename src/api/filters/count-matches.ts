import { matchesType } from '../../domain/event.ts';
import type { FilterNode } from '../../domain/filter.ts';
import type { Pool } from '../../postgres/database.ts';
import { listNewestEvents } from '../../postgres/queries/search-events.ts';
import { readPayloads } from '../events/read-payloads.ts';
import { matchesEvent } from './match-event.ts';
import { COUNTED_EVENTS } from './schema.ts';

export interface MatchCount {
  readonly examined: number;
  readonly matching: number;
}

/**
 * Counts the newest events that an endpoint with these types and this filter would get. Null: no filter. With a filter,
 * call it in `takeTurn`.
 */
export async function countMatches(
  pool: Pool,
  tenant: string | null,
  patterns: readonly string[],
  filter: FilterNode | null,
): Promise<MatchCount> {
  const events = await listNewestEvents(pool, tenant, COUNTED_EVENTS);
  const ofTypes = events.filter(({ type }) => patterns.some((pattern) => matchesType(pattern, type)));
  if (filter === null) return { examined: events.length, matching: ofTypes.length };
  let matching = 0;
  for await (const event of readPayloads(pool, ofTypes))
    if (matchesEvent(filter, event, event.data)) matching += 1;
  return { examined: events.length, matching };
}
