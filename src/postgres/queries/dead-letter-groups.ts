import type { Uuid } from '../../domain/ids.ts';
import type { DeadReason } from '../../domain/outcome.ts';
import type { Pool } from '../database.ts';
import { FIRST_ID, type IdRange, LAST_ID } from './list-query.ts';
import { SHOWN_URL } from './notifiers.ts';

export interface DeadLetterGroup {
  readonly endpoint_id: Uuid;
  /** Null: the endpoint has been deleted. */
  readonly url: string | null;
  readonly description: string | null;
  readonly tenant: string;
  readonly reason: DeadReason;
  readonly count: number;
  readonly oldest_at: Date;
  readonly newest_at: Date;
}

// Only the newest rows, by an index that ends in the id: with millions of dead letters, users want to see where they come
// from, not wait for exact numbers.
const groupsOf = (condition: string) => `
    select d.endpoint_id, ${SHOWN_URL} as url, e.description, d.tenant, d.reason, count(*)::int as count, min(d.dead_at) as oldest_at,
           max(d.dead_at) as newest_at
      from (select endpoint_id, tenant, reason, dead_at from posthorn.dead_letters
             where ${condition} and id >= $2::uuid and id < $3::uuid order by id desc limit $1) d
      left join posthorn.endpoints e on e.id = d.endpoint_id and e.deleted_at is null
     group by d.endpoint_id, e.id, d.tenant, d.reason
     order by count desc, newest_at desc`;
const OF_ALL = { name: 'group_dead_letters', text: groupsOf('true') };
const OF_TENANT = { name: 'group_dead_letters_of_tenant', text: groupsOf('tenant = $4') };

const ANY_TIME: IdRange = { from: null, before: null };

/** Counts the newest `limit` dead letters of the range by endpoint and reason, largest group first. */
export async function groupDeadLetters(
  pool: Pool,
  tenant: string | null,
  limit: number,
  { from, before }: IdRange = ANY_TIME,
): Promise<DeadLetterGroup[]> {
  const values = [limit, from ?? FIRST_ID, before ?? LAST_ID];
  const query = tenant === null ? { ...OF_ALL, values } : { ...OF_TENANT, values: [...values, tenant] };
  return (await pool.query<DeadLetterGroup>(query)).rows;
}
