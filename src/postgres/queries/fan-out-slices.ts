import type { Uuid } from '../../domain/ids.ts';
import type { FanOutSlice, SliceDeliveries, SliceResult } from '../../ports/fan-out-store.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Pool } from '../database.ts';
import { trustedVersion } from './current-version.ts';
import { storeDebounceKeys } from './debounce.ts';
import { journalSkipped } from './stats-journal.ts';

const COLUMNS = `
  event_id, tenant, first_ordinal, was_disabled, endpoint_ids[1:$2]::text[] as endpoint_ids, extract(epoch from deliver_at)::float8 * 1000 as deliver_at`;

const FIND_NEXT = {
  name: 'find_next_slice',
  text: `
    (select ${COLUMNS} from posthorn.fan_out_slices where tenant > $1 order by tenant, seq, first_ordinal limit 1)
     union all
    (select ${COLUMNS} from posthorn.fan_out_slices order by tenant, seq, first_ordinal limit 1)
     limit 1`,
};

export async function findNextSlice(
  pool: Pool,
  afterTenant: string,
  maxEndpoints: number,
): Promise<FanOutSlice | null> {
  const { rows } = await pool.query<{
    event_id: Uuid;
    tenant: string;
    first_ordinal: number;
    endpoint_ids: Uuid[];
    was_disabled: boolean;
    deliver_at: number | null;
  }>({ ...FIND_NEXT, values: [afterTenant, maxEndpoints] });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    eventId: row.event_id,
    tenant: row.tenant,
    firstOrdinal: row.first_ordinal,
    endpointIds: row.endpoint_ids,
    wasDisabled: row.was_disabled,
    deliverAt: row.deliver_at,
  };
}

const COUNT = {
  name: 'count_slices',
  text: `select count(*)::int as slices
           from (select from posthorn.fan_out_slices where tenant = $1 order by seq, first_ordinal limit $2) as s`,
};

/** How many unwritten slices the tenant has, counted up to `max`. */
export async function countSlices(pool: Pool, tenant: string, max: number): Promise<number> {
  const { rows } = await pool.query<{ slices: number }>({ ...COUNT, values: [tenant, max] });
  return rows[0]!.slices;
}

// The lock comes first: only one process at a time writes a slice. Then the row of the slice is deleted, or shortened if
// only its first endpoints are written. The process that changes the row writes the deliveries; others find no row.
//
// $1: version of the endpoints, $2: event, $3: first ordinal, $4: how many endpoints,
// $5 to $8: waiting deliveries (ids, endpoints, due, fifo), $9 to $11: skipped deliveries (ids, endpoints, reasons),
// $12: tenant.
const WRITE = {
  name: 'write_slice',
  text: `
    with gate as materialized (
      select ${trustedVersion('array[$12::text]')} = $1 as is_current,
             pg_try_advisory_xact_lock(${ADVISORY_LOCKS.fanOuts}) as is_free
        from posthorn.subscription_version v
    ),
    ended as (
      delete from posthorn.fan_out_slices
       where (select is_current and is_free from gate)
         and event_id = $2 and first_ordinal = $3 and cardinality(endpoint_ids) <= $4
      returning tenant, event_type, seq
    ),
    shortened as (
      update posthorn.fan_out_slices set first_ordinal = first_ordinal + $4, endpoint_ids = endpoint_ids[$4 + 1:]
       where (select is_current and is_free from gate)
         and event_id = $2 and first_ordinal = $3 and cardinality(endpoint_ids) > $4
      returning tenant, event_type, seq
    ),
    slice as materialized (select * from ended union all select * from shortened),
    queued as (
      insert into posthorn.queue (id, endpoint_id, due_at, ages_from, fifo, seq, tenant, event_type)
      select d.id, d.endpoint_id, to_timestamp(d.due_at), to_timestamp(d.due_at), d.fifo,
             case when d.fifo then s.seq else nextval('posthorn.acceptance_order') end, s.tenant, s.event_type
        from slice s cross join unnest($5::uuid[], $6::uuid[], $7::float8[], $8::boolean[]) as d(id, endpoint_id, due_at, fifo)
    ),
    skipped as (
      insert into posthorn.deliveries (id, endpoint_id, status, reason, attempts, replays, finished_at, tenant, event_type)
      select d.id, d.endpoint_id, 'skipped', d.reason, 0, 0, now(), s.tenant, s.event_type
        from slice s cross join unnest($9::uuid[], $10::uuid[], $11::text[]) as d(id, endpoint_id, reason)
      returning endpoint_id, reason
    ),
    counted as (${journalSkipped("(select endpoint_id from skipped where reason = 'endpoint_disabled') as disabled")}
    )
    select is_current, is_free, exists (select from slice) as is_written from gate`,
};

const literal = (values: readonly (string | number | boolean)[]): string => `{${values.join(',')}}`;

export async function writeSlice(
  pool: Pool,
  { eventId, tenant, firstOrdinal, endpointIds }: FanOutSlice,
  { waiting, skipped }: SliceDeliveries,
  endpointVersion: number,
): Promise<SliceResult> {
  await storeDebounceKeys(pool, waiting);
  const { rows } = await pool.query<{ is_current: boolean; is_free: boolean; is_written: boolean }>({
    ...WRITE,
    values: [
      endpointVersion,
      eventId,
      firstOrdinal,
      endpointIds.length,
      literal(waiting.map(({ id }) => id)),
      literal(waiting.map(({ endpointId }) => endpointId)),
      literal(waiting.map(({ dueAt }) => (dueAt === null ? 'null' : dueAt / 1000))),
      literal(waiting.map(({ fifo }) => fifo)),
      literal(skipped.map(({ id }) => id)),
      literal(skipped.map(({ endpointId }) => endpointId)),
      literal(skipped.map(({ reason }) => reason)),
      tenant,
    ],
  });
  const { is_current, is_free, is_written } = rows[0]!;
  if (!is_free) return 'busy';
  if (!is_current) return 'stale';
  return is_written ? 'written' : 'gone';
}
