import type { Uuid } from '../../domain/ids.ts';
import type { AttemptOutcome } from '../../domain/outcome.ts';
import type { Settlement } from '../../ports/delivery-queue.ts';
import type { Queryable } from '../database.ts';
import { uuidArray } from '../uuid-array.ts';
import { toRows } from './settlement-rows.ts';
import { journalOf } from './stats-journal.ts';

const REQUEST_COLUMNS = `
  started_at float8, duration_ms int, dns_ms int, connect_ms int, tls_ms int, first_byte_ms int, status_code smallint,
  url text, request_headers text, response_headers text, body_start int, body_length int, truncated boolean`;

// Usually all deliveries move. Then `moved` is null instead of a list of their ids.
const record = (removed: string, source: string): string => `
    removed as (${removed}
    ),
    delivered as (
      insert into posthorn.deliveries (id, endpoint_id, status, attempts, replays, last_status_code, finished_at, tenant, event_type)
      select delivery_id, endpoint_id, 'delivered', 1, 0, status_code, to_timestamp(started_at + duration_ms / 1000.0),
             tenant, event_type
        from ${source}
    ),
    logged as (
      insert into posthorn.attempts
             (delivery_id, id, number, started_at, duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms, status_code, outcome,
              url, request_headers, response_headers, response_body, response_truncated, trigger, worker)
      select delivery_id, attempt_id, 1, to_timestamp(started_at), duration_ms, dns_ms, connect_ms, tls_ms, first_byte_ms,
             status_code, 'delivered', url, request_headers, response_headers,
             substring($2::bytea from body_start for body_length), coalesce(truncated, false), 'auto', $3
        from ${source}
    ),
    counted as (
      insert into posthorn.stats_journal (counts) select $4::text where $4 is not null and (select count(*) from removed) = $5
    )
    select case when count(*) < $5 then coalesce(array_agg(delivery_id::text), '{}') end as moved from removed`;

// The usual batch: only deliveries that succeeded at their first attempt. A third of the processor time of SETTLE, most
// of which is spent on preparing its many parts for each commit. A delivery that was replayed is left to SETTLE.
const SETTLE_FIRST_ATTEMPTS = {
  name: 'settle_first_attempts',
  text: `
    with incoming as materialized (
      select * from json_to_recordset($1::json) as t(delivery_id uuid, attempt_id uuid, ${REQUEST_COLUMNS})
    ),${record(
      `
      delete from posthorn.queue q using incoming i
       where q.id = i.delivery_id and q.attempts = 0 and q.replays = 0
         and q.id = any (array(select delivery_id from incoming))
      returning q.endpoint_id, q.tenant, q.event_type, i.*`,
      'removed',
    )}`,
};

// The same for requests that carried many deliveries each. What they have in common is sent and read once per request.
const SETTLE_FIRST_BATCHES = {
  name: 'settle_first_batches',
  text: `
    with requests as materialized (
      select * from json_to_recordset($1::json) as t(n int, ${REQUEST_COLUMNS})
    ),${record(
      `
      delete from posthorn.queue q using unnest($6::uuid[], $7::uuid[], $8::int[]) as i(delivery_id, attempt_id, n)
       where q.id = i.delivery_id and q.attempts = 0 and q.replays = 0 and q.id = any ($6::uuid[])
      returning q.endpoint_id, q.tenant, q.event_type, i.*`,
      'removed join requests using (n)',
    )}`,
};

/** True for a success at the first attempt of a delivery that was never replayed. */
export const isFirstSuccess = ({ verdict, attempt, attemptsBefore }: Settlement): boolean =>
  verdict.kind === 'delivered' && attemptsBefore === 0 && attempt?.trigger === 'auto';

/** Records successes at the first attempt. Returns the deliveries that moved, and counts them if all did. */
export async function settleFirstAttempts(
  client: Queryable,
  settlements: readonly Settlement[],
  workerName: string,
): Promise<Set<Uuid>> {
  const requests = numberRequests(settlements);
  const isShared = 2 * requests.firsts.length <= settlements.length;
  const { rows, bodies } = toRows(isShared ? requests.firsts : settlements);
  const incoming = isShared ? rows.map((row, index) => ({ ...row, n: index + 1 })) : rows;
  const values = [JSON.stringify(incoming), bodies, workerName, journalOf(settlements), settlements.length];
  const query = isShared
    ? { ...SETTLE_FIRST_BATCHES, values: [...values, ...memberValues(settlements, requests.numbers)] }
    : { ...SETTLE_FIRST_ATTEMPTS, values };
  const { rows: answers } = await client.query<{ moved: Uuid[] | null }>(query);
  return new Set(answers[0]!.moved ?? settlements.map(({ deliveryId }) => deliveryId));
}

/** The first delivery of each request, and for each delivery the number of its request, which starts at 1. */
function numberRequests(settlements: readonly Settlement[]): { firsts: Settlement[]; numbers: number[] } {
  const firsts: Settlement[] = [];
  const numbers: number[] = [];
  let last: AttemptOutcome | undefined;
  for (const settlement of settlements) {
    const outcome = settlement.attempt?.outcome;
    if (outcome !== last) firsts.push(settlement);
    last = outcome;
    numbers.push(firsts.length);
  }
  return { firsts, numbers };
}

const memberValues = (settlements: readonly Settlement[], numbers: readonly number[]): unknown[] => [
  uuidArray(settlements.map(({ deliveryId }) => deliveryId)),
  uuidArray(settlements.map(({ attempt }) => attempt!.id)),
  `{${numbers.join(',')}}`,
];
