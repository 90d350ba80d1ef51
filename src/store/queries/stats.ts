import { addCounts } from '../../domain/histogram.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';

/** What happened to one endpoint in one hour, or the part of it that is new. */
export interface HourOfEndpoint {
  readonly endpointId: Uuid;
  /** Milliseconds since 1970, a whole hour. */
  readonly hour: number;
  attempts: number;
  successes: number;
  failures: number;
  retried: number;
  delivered: number;
  dead: number;
  readonly latency: number[];
  readonly tries: number[];
}

// Adds two arrays of counts, of whatever lengths.
const sum = (column: string): string => `(
  select coalesce(array_agg(coalesce(a, 0) + coalesce(b, 0) order by i), '{}')
    from unnest(s.${column}, excluded.${column}) with ordinality as t(a, b, i))`;

// In the order of the key: two processes may add to the same hours, after a shard has changed hands.
const ADD = {
  name: 'add_endpoint_stats',
  text: `
    insert into posthorn.endpoint_stats as s
           (endpoint_id, hour, attempts, successes, failures, retried, delivered, dead, latency, tries)
    select endpoint_id, to_timestamp(hour), attempts, successes, failures, retried, delivered, dead, latency, tries
      from json_to_recordset($1::json) as t(
             endpoint_id uuid, hour float8, attempts int, successes int, failures int, retried int, delivered int,
             dead int, latency int[], tries int[])
     order by endpoint_id, hour
        on conflict (endpoint_id, hour) do update
       set attempts = s.attempts + excluded.attempts, successes = s.successes + excluded.successes,
           failures = s.failures + excluded.failures, retried = s.retried + excluded.retried,
           delivered = s.delivered + excluded.delivered, dead = s.dead + excluded.dead,
           latency = ${sum('latency')}, tries = ${sum('tries')}`,
};

export async function addStats(pool: Pool, hours: readonly HourOfEndpoint[]): Promise<void> {
  const rows = hours.map(({ endpointId, hour, ...counts }) => ({
    endpoint_id: endpointId,
    hour: hour / 1000,
    ...counts,
  }));
  await pool.query({ ...ADD, values: [JSON.stringify(rows)] });
}

export type Totals = Omit<HourOfEndpoint, 'endpointId' | 'hour'>;
export interface HourTotals extends Totals {
  readonly hour: number;
}

export const noTotals = (): Totals => ({
  attempts: 0,
  successes: 0,
  failures: 0,
  retried: 0,
  delivered: 0,
  dead: 0,
  latency: [],
  tries: [],
});

export function addTotals(to: Totals, from: Totals): void {
  to.attempts += from.attempts;
  to.successes += from.successes;
  to.failures += from.failures;
  to.retried += from.retried;
  to.delivered += from.delivered;
  to.dead += from.dead;
  addCounts(to.latency, from.latency);
  addCounts(to.tries, from.tries);
}

// Arrays travel as JSON text, which the driver leaves alone: its own reading of arrays is several times slower.
const HOURS = {
  name: 'endpoint_hours',
  text: `
    select extract(epoch from hour)::float8 * 1000 as hour, attempts, successes, failures, retried, delivered, dead,
           array_to_json(latency) as latency, array_to_json(tries) as tries
      from posthorn.endpoint_stats
     where endpoint_id = $1 and hour > to_timestamp($2::float8 / 1000)
     order by hour`,
};

const HOUR_MS = 3_600_000;

/** The hours that ended after `since`, oldest first. */
export async function loadHours(pool: Pool, endpointId: Uuid, since: number): Promise<HourTotals[]> {
  const { rows } = await pool.query<HourTotals>({ ...HOURS, values: [endpointId, since - HOUR_MS] });
  return rows;
}

// One row per endpoint, whatever the hours: 250 endpoints over a day are 6,000 rows otherwise, and reading those took
// twice as long. The histograms are added here: summing arrays in SQL means a row per bucket.
const TOTALS = {
  name: 'endpoint_totals',
  text: `
    select endpoint_id, sum(attempts)::int as attempts, sum(successes)::int as successes, sum(failures)::int as failures,
           sum(retried)::int as retried, sum(delivered)::int as delivered, sum(dead)::int as dead,
           '[' || string_agg(array_to_json(latency)::text, ',') || ']' as latency,
           '[' || string_agg(array_to_json(tries)::text, ',') || ']' as tries
      from posthorn.endpoint_stats
     where endpoint_id = any ($1::uuid[]) and hour > to_timestamp($2::float8 / 1000)
     group by endpoint_id`,
};

/** The same, added up, for many endpoints. */
export async function loadTotals(
  pool: Pool,
  endpointIds: readonly Uuid[],
  since: number,
): Promise<Map<Uuid, Totals>> {
  const found = new Map<Uuid, Totals>(endpointIds.map((id) => [id, noTotals()]));
  if (endpointIds.length === 0) return found;
  const { rows } = await pool.query<
    Omit<Totals, 'latency' | 'tries'> & { endpoint_id: Uuid; latency: string; tries: string }
  >({ ...TOTALS, values: [`{${endpointIds.join(',')}}`, since - HOUR_MS] });
  for (const { endpoint_id, latency, tries, ...counts } of rows) {
    found.set(endpoint_id, { ...counts, latency: added(latency), tries: added(tries) });
  }
  return found;
}

function added(json: string): number[] {
  const sum: number[] = [];
  for (const counts of JSON.parse(json) as number[][]) addCounts(sum, counts);
  return sum;
}
