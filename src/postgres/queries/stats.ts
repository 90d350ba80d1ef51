/** Statistics by minute, quarter of an hour and hour, per endpoint and per tenant and event type. */
import { addCounts } from '../../domain/histogram.ts';
import type { Uuid } from '../../domain/ids.ts';
import {
  type Bucket,
  type EndpointBucket,
  type EventBucket,
  HOUR,
  noTotals,
  type Totals,
} from '../../domain/statistics.ts';
import type { Client, Pool } from '../database.ts';

export * from '../../domain/statistics.ts';

const NUMBERS = ['attempts', 'first_tries', 'successes', 'failures', 'retried', 'delivered', 'dead'];
const HISTOGRAMS = ['response', 'delivery', 'tries'];

// Adds two arrays of counts. If their lengths differ, unnest pads the shorter one with nulls.
const sum = (column: string): string =>
  `array(select coalesce(a, 0) + coalesce(b, 0) from unnest(s.${column}, excluded.${column}) as t(a, b))`;

const buildAddStatement = (
  table: string,
  key: readonly [name: string, type: string][],
  numbers: readonly string[],
) => {
  const keys = [...key.map(([name]) => name), 'seconds', 'at'];
  const columns = [...numbers, ...HISTOGRAMS].join(', ');
  return `
    insert into posthorn.${table} as s (${keys.join(', ')}, ${columns})
    select ${key.map(([name]) => name).join(', ')}, seconds, to_timestamp(at), ${columns}
      from json_to_recordset($1::json) as t(
             ${key.map((column) => column.join(' ')).join(', ')}, seconds int, at float8,
             ${[...numbers.map((name) => `${name} int`), ...HISTOGRAMS.map((name) => `${name} int[]`)].join(', ')})
        on conflict (${keys.join(', ')}) do update
       set ${numbers.map((name) => `${name} = s.${name} + excluded.${name}`).join(', ')},
           ${HISTOGRAMS.map((name) => `${name} = ${sum(name)}`).join(', ')}`;
};

const ADD_ENDPOINTS = {
  name: 'add_endpoint_stats',
  text: buildAddStatement('endpoint_stats', [['endpoint_id', 'uuid']], NUMBERS),
};
const ADD_EVENTS = {
  name: 'add_event_stats',
  text: buildAddStatement(
    'event_stats',
    [
      ['tenant', 'text'],
      ['type', 'text'],
    ],
    ['accepted', ...NUMBERS],
  ),
};

/** A statement of this size takes PostgreSQL some milliseconds, and this process less than one. */
const ROWS_PER_STATEMENT = 100;

/** No two buckets may have the same key: a statement cannot update a row twice. Returns how many were written. */
export function addEndpointStats(client: Client, buckets: Iterable<EndpointBucket>): Promise<number> {
  return addInChunks(client, ADD_ENDPOINTS, buckets, ({ endpointId, ...bucket }) => ({
    endpoint_id: endpointId,
    ...toRow(bucket),
  }));
}

export function addEventStats(client: Client, buckets: Iterable<EventBucket>): Promise<number> {
  return addInChunks(client, ADD_EVENTS, buckets, ({ tenant, type, ...bucket }) => ({
    tenant,
    type,
    ...toRow(bucket),
  }));
}

async function addInChunks<B extends Bucket>(
  client: Client,
  statement: { name: string; text: string },
  buckets: Iterable<B>,
  rowOf: (bucket: B) => object,
): Promise<number> {
  let added = 0;
  let rows: object[] = [];
  const add = async (): Promise<void> => {
    await client.query({ ...statement, values: [JSON.stringify(rows)] });
    added += rows.length;
    rows = [];
  };
  for (const bucket of buckets) {
    rows.push(rowOf(bucket));
    if (rows.length === ROWS_PER_STATEMENT) await add();
  }
  if (rows.length > 0) await add();
  return added;
}

function toRow({ seconds, at, totals: { firstTries, ...totals } }: Bucket & { totals: Totals }) {
  return { seconds, at: at / 1000, first_tries: firstTries, ...totals };
}

const TYPES_OF_HOURS = {
  name: 'stats_types_of_hours',
  text: `
    select s.tenant, w.at, s.type
      from unnest($1::text[], $2::float8[]) as w(tenant, at)
      join posthorn.event_stats s on s.tenant = w.tenant and s.seconds = ${HOUR} and s.at = to_timestamp(w.at / 1000)
     where s.type <> ''`,
};

/** The event types that already have their own rows in these hours. */
export async function findCountedTypes(
  client: Client,
  hours: readonly { tenant: string; at: number }[],
): Promise<{ tenant: string; at: number; type: string }[]> {
  const { rows } = await client.query<{ tenant: string; at: number; type: string }>({
    ...TYPES_OF_HOURS,
    values: [hours.map(({ tenant }) => tenant), hours.map(({ at }) => at)],
  });
  return rows;
}

export interface TimedTotals extends Totals {
  readonly at: number;
}

// Arrays are read as JSON, because the driver's own parser of arrays is several times slower.
const COLUMNS = `
  extract(epoch from at)::float8 * 1000 as at, attempts, first_tries as "firstTries", successes, failures, retried,
  delivered, dead, array_to_json(response) as response, array_to_json(delivery) as delivery, array_to_json(tries) as tries`;

const ENDPOINT_SERIES = {
  name: 'endpoint_series',
  text: `
    select 0 as accepted, ${COLUMNS} from posthorn.endpoint_stats
     where endpoint_id = $1 and seconds = $2 and at >= to_timestamp($3::float8 / 1000)
       and at < to_timestamp($4::float8 / 1000) order by at`,
};

/** The buckets from `at` until `before`. */
export interface BucketRange extends Bucket {
  readonly before: number;
}

/** The buckets of the range, oldest first, without those in which nothing happened. */
export async function readEndpointSeries(
  pool: Pool,
  endpointId: Uuid,
  { seconds, at, before }: BucketRange,
): Promise<TimedTotals[]> {
  const { rows } = await pool.query<TimedTotals>({
    ...ENDPOINT_SERIES,
    values: [endpointId, seconds, at, before],
  });
  return rows;
}

const EVENT_SERIES = {
  name: 'event_series',
  text: `
    select accepted, ${COLUMNS} from posthorn.event_stats
     where tenant = $1 and type = $2 and seconds = $3 and at >= to_timestamp($4::float8 / 1000)
       and at < to_timestamp($5::float8 / 1000) order by at`,
};

export async function readEventSeries(
  pool: Pool,
  tenant: string,
  type: string,
  { seconds, at, before }: BucketRange,
): Promise<TimedTotals[]> {
  const values = [tenant, type, seconds, at, before];
  const { rows } = await pool.query<TimedTotals>({ ...EVENT_SERIES, values });
  return rows;
}

// One row per endpoint instead of one per hour: for 250 endpoints over a day, reading 6,000 rows took twice as long. The
// histograms are added up here, because summing arrays in SQL needs a row per element.
const TOTALS = {
  name: 'endpoint_totals',
  text: `
    select endpoint_id, 0 as accepted, sum(attempts)::float8 as attempts, sum(first_tries)::float8 as "firstTries",
           sum(successes)::float8 as successes, sum(failures)::float8 as failures, sum(retried)::float8 as retried,
           sum(delivered)::float8 as delivered, sum(dead)::float8 as dead,
           '[' || string_agg(array_to_json(response)::text, ',') || ']' as response,
           '[' || string_agg(array_to_json(delivery)::text, ',') || ']' as delivery,
           '[' || string_agg(array_to_json(tries)::text, ',') || ']' as tries
      from posthorn.endpoint_stats
     where endpoint_id = any ($1::uuid[]) and seconds = $2 and at >= to_timestamp($3::float8 / 1000)
     group by endpoint_id`,
};

/** The sums since `at`, for many endpoints. */
export async function readEndpointTotals(
  pool: Pool,
  endpointIds: readonly Uuid[],
  { seconds, at }: Bucket,
): Promise<Map<Uuid, Totals>> {
  const found = new Map<Uuid, Totals>(endpointIds.map((id) => [id, noTotals()]));
  if (endpointIds.length === 0) return found;
  type Row = Omit<Totals, 'response' | 'delivery' | 'tries'> & {
    endpoint_id: Uuid;
    response: string;
    delivery: string;
    tries: string;
  };
  const values = [`{${endpointIds.join(',')}}`, seconds, at];
  const { rows } = await pool.query<Row>({ ...TOTALS, values });
  for (const { endpoint_id, response, delivery, tries, ...counts } of rows)
    found.set(endpoint_id, {
      ...counts,
      response: addUp(response),
      delivery: addUp(delivery),
      tries: addUp(tries),
    });
  return found;
}

function addUp(json: string): number[] {
  const sum: number[] = [];
  for (const counts of JSON.parse(json) as number[][]) addCounts(sum, counts);
  return sum;
}
