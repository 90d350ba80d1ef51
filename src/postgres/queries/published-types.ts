import { RESERVED_TYPE_PREFIX } from '../../domain/event.ts';
import type { Queryable } from '../database.ts';
import { byIndex, hideFromPlanner } from './list-query.ts';

/** How many of the newest events of the tenant are compared. */
export const COMPARED_EVENTS = 1_000;

/**
 * Returns the patterns that match none of the types that the tenant has published lately. Returns none if there is a catalogue,
 * or if the tenant has published nothing.
 */
export async function findUnpublishedPatterns(
  client: Queryable,
  tenant: string,
  patterns: readonly string[],
): Promise<Set<string>> {
  const values: unknown[] = [patterns, RESERVED_TYPE_PREFIX];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const range = byIndex(['tenant'], [hideFromPlanner(bind(tenant))], { from: null, before: null }, bind);
  const { rows } = await client.query<{ pattern: string }>(
    `with published as materialized (
       select distinct e.type
         from (select q.type from posthorn.events q where ${range.conditions.join(' and ')}
                order by ${range.order} limit ${COMPARED_EVENTS}) e
        where not starts_with(e.type, $2) and not exists (select from posthorn.event_types)
     )
     select pattern from unnest($1::text[]) as pattern
      where exists (select from published)
        and not exists (select from published p
                         where p.type = pattern
                            or (right(pattern, 2) = '.*' and starts_with(p.type, left(pattern, -1))))`,
    values,
  );
  return new Set(rows.map(({ pattern }) => pattern));
}
