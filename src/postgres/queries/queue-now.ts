/**
 * The current size of the queue. Counting stops at a limit: this runs every few seconds, also while the queue is long.
 */
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';

export const COUNT_AT_MOST = 100_000;

export interface QueueNow {
  readonly waiting: number;
  readonly retrying: number;
  readonly oldest: Uuid | null;
  readonly dead: number;
  readonly circuitsOpen: number;
  /** How many of the waiting deliveries belong to an endpoint with an open circuit. */
  readonly behindOpenCircuit: number;
}

const ALL = {
  name: 'queue_now',
  text: `
    select count(*)::int as waiting, (count(*) filter (where attempts > 0))::int as retrying,
           (select id from posthorn.queue order by id limit 1) as oldest,
           (select count(*)::int from (select from posthorn.dead_letters limit $1) as d) as dead,
           (select count(*)::int from posthorn.endpoint_health h join posthorn.endpoints e on e.id = h.endpoint_id
             where h.circuit <> 'closed' and e.deleted_at is null) as "circuitsOpen",
           (select count(*)::int
              from (select from posthorn.endpoint_health h
                     cross join lateral (select from posthorn.queue where endpoint_id = h.endpoint_id limit $1) as w
                     where h.circuit <> 'closed' limit $1) as b) as "behindOpenCircuit"
      from (select attempts from posthorn.queue limit $1) as q`,
};

// Through the tenant's endpoints: the queue has an index by endpoint, but none by tenant.
const OF_TENANT = {
  name: 'queue_now_of_tenant',
  text: `
    with own as materialized (select id, deleted_at from posthorn.endpoints where tenant = $2)
    select count(*)::int as waiting, (count(*) filter (where attempts > 0))::int as retrying,
           (select q.id
              from own cross join lateral (select id from posthorn.queue where endpoint_id = own.id order by id limit 1) as q
             order by q.id limit 1) as oldest,
           (select count(*)::int from (select from posthorn.dead_letters where tenant = $2 limit $1) as d) as dead,
           (select count(*)::int from own join posthorn.endpoint_health h on h.endpoint_id = own.id
             where h.circuit <> 'closed' and own.deleted_at is null) as "circuitsOpen",
           (select count(*)::int
              from (select from own join posthorn.endpoint_health h on h.endpoint_id = own.id
                     cross join lateral (select from posthorn.queue where endpoint_id = own.id limit $1) as w
                     where h.circuit <> 'closed' limit $1) as b) as "behindOpenCircuit"
      from (select w.attempts
              from own cross join lateral (select attempts from posthorn.queue where endpoint_id = own.id limit $1) as w
             limit $1) as q`,
};

/** An empty tenant stands for all. */
export async function readQueueNow(pool: Pool, tenant: string): Promise<QueueNow> {
  const { rows } = await pool.query<QueueNow>(
    tenant === '' ? { ...ALL, values: [COUNT_AT_MOST] } : { ...OF_TENANT, values: [COUNT_AT_MOST, tenant] },
  );
  return rows[0]!;
}
