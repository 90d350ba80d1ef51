import { matchesType } from '../../domain/event.ts';
import { type FilterNode, MAX_STEPS_PER_FILTER, matchesFilter } from '../../domain/filter.ts';
import type { Pool } from '../../postgres/database.ts';
import type { EventWithData } from '../../postgres/queries/events.ts';
import { newestEvents } from '../../postgres/queries/search-events.ts';
import { COUNTED_EVENTS } from './schema.ts';

export interface MatchCount {
  readonly examined: number;
  readonly matching: number;
}

/** Counts the newest events that an endpoint with these types and this filter would get. Null: no filter. */
export async function countMatches(
  pool: Pool,
  tenant: string | null,
  patterns: readonly string[],
  filter: FilterNode | null,
): Promise<MatchCount> {
  const events = await newestEvents(pool, tenant, COUNTED_EVENTS);
  let matching = 0;
  for (const event of events) {
    if (!patterns.some((pattern) => matchesType(pattern, event.type))) continue;
    if (filter === null || isMatch(event, filter)) matching += 1;
    // Large payloads take milliseconds to parse: let other requests proceed.
    if ((event.data?.length ?? 0) > 100_000) await new Promise((resolve) => setImmediate(resolve));
  }
  return { examined: events.length, matching };
}

function isMatch({ type, idempotency_key, options, data }: EventWithData, filter: FilterNode): boolean {
  const subject = {
    type,
    channels: options?.channels ?? [],
    schemaVersion: options?.schema_version ?? null,
    idempotencyKey: idempotency_key,
    data: data === null ? undefined : (JSON.parse(data.toString()) as unknown),
  };
  return matchesFilter(filter, subject, { stepsLeft: MAX_STEPS_PER_FILTER });
}
