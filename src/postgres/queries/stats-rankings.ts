import type { Circuit } from '../../domain/breaker.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import { SHOWN_URL } from './notifiers.ts';
import type { BucketRange } from './stats.ts';

export interface TypeFigures {
  readonly type: string;
  readonly attempts: number;
  readonly firstTries: number;
  readonly delivered: number;
  readonly dead: number;
}

// Sums are float8, exact up to 2^53. An int would overflow in a busy week of all tenants.
const BUSIEST_TYPES = {
  name: 'busiest_types',
  text: `
    select type, sum(attempts)::float8 as attempts, sum(first_tries)::float8 as "firstTries", sum(delivered)::float8 as delivered, sum(dead)::float8 as dead
      from posthorn.event_stats
     where tenant = $1 and seconds = $2 and at >= to_timestamp($3::float8 / 1000)
       and at < to_timestamp($5::float8 / 1000) and type <> ''
     group by type order by sum(attempts) desc, sum(accepted) desc, type limit $4`,
};

/** An empty tenant stands for all. */
export async function findBusiestTypes(
  pool: Pool,
  tenant: string,
  { seconds, at, before }: BucketRange,
  limit: number,
): Promise<TypeFigures[]> {
  const values = [tenant, seconds, at, limit, before];
  const { rows } = await pool.query<TypeFigures>({ ...BUSIEST_TYPES, values });
  return rows;
}

export interface EndpointFigures {
  readonly id: Uuid;
  readonly url: string;
  readonly description: string;
  readonly tenant: string;
  readonly enabled: boolean;
  readonly paused: boolean;
  readonly attempts: number;
  readonly successes: number;
  readonly failures: number;
  readonly dead: number;
  readonly circuit: Circuit;
}

// Finds the worst by an index of the rows with failures, and then reads all rows of those endpoints.
const WORST_ENDPOINTS = {
  name: 'worst_endpoints',
  text: `
    with worst as materialized (
      select e.id, ${SHOWN_URL} as url, e.description, e.tenant, e.enabled, e.paused
        from posthorn.endpoint_stats s join posthorn.endpoints e on e.id = s.endpoint_id
       where s.failed and s.seconds = $2 and s.at >= to_timestamp($3::float8 / 1000)
         and s.at < to_timestamp($5::float8 / 1000)
         and e.deleted_at is null and ($1 = '' or e.tenant = $1)
       group by e.id order by sum(s.failures) desc, e.id limit $4
    )
    select w.*, sum(s.attempts)::float8 as attempts, sum(s.successes)::float8 as successes,
           sum(s.failures)::float8 as failures, sum(s.dead)::float8 as dead, coalesce(h.circuit, 'closed') as circuit
      from worst w
      join posthorn.endpoint_stats s
        on s.endpoint_id = w.id and s.seconds = $2 and s.at >= to_timestamp($3::float8 / 1000)
       and s.at < to_timestamp($5::float8 / 1000)
      left join posthorn.endpoint_health h on h.endpoint_id = w.id
     group by w.id, w.url, w.description, w.tenant, w.enabled, w.paused, h.circuit order by sum(s.failures) desc, w.id`,
};

export async function findWorstEndpoints(
  pool: Pool,
  tenant: string,
  { seconds, at, before }: BucketRange,
  limit: number,
): Promise<EndpointFigures[]> {
  const values = [tenant, seconds, at, limit, before];
  const { rows } = await pool.query<EndpointFigures>({ ...WORST_ENDPOINTS, values });
  return rows;
}
