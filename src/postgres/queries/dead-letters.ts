import type { Uuid } from '../../domain/ids.ts';
import type { DeadReason } from '../../domain/outcome.ts';
import type { Pool, Queryable } from '../database.ts';
import { batchIdOf, type DeliveryView } from './deliveries.ts';
import {
  byIndex,
  hideFromPlanner,
  type IdRange,
  type ListResult,
  listQuery,
  toListResult,
} from './list-query.ts';

export interface DeadLetterFilter extends IdRange {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  readonly type: string | null;
  readonly reason: DeadReason | null;
  /** Without those that are being replayed. */
  readonly onlyDead?: boolean;
  readonly limit: number;
}

/** A dead letter. While it is being replayed, its status and attempts are those of the replay. */
export interface DeadLetterView extends DeliveryView {
  readonly dead_at: Date;
}

/** Newest first, by the index of the endpoint, of the tenant, or the primary key. */
export async function listDeadLetters(
  pool: Pool,
  filter: DeadLetterFilter,
): Promise<ListResult<DeadLetterView>> {
  const { text, values } = deadLettersStatement(filter);
  const { rows } = await pool.query<DeadLetterView & { reached_id: Uuid | null }>(text, values);
  return toListResult(rows, filter.limit);
}

export function deadLettersStatement(filter: DeadLetterFilter): { text: string; values: unknown[] } {
  const values: unknown[] = [filter.limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const { tenant, endpointId, type, reason } = filter;
  const range =
    endpointId !== null
      ? byIndex(['endpoint_id'], [hideFromPlanner(bind(endpointId), 'uuid')], filter, bind)
      : tenant !== null
        ? byIndex(['tenant'], [hideFromPlanner(bind(tenant))], filter, bind)
        : byIndex([], [], filter, bind);
  // A tenant must not see dead letters of another tenant's endpoint.
  if (endpointId !== null && tenant !== null)
    range.conditions.push(
      `exists (select from posthorn.endpoints e where e.id = ${bind(endpointId)} and e.tenant = ${bind(tenant)})`,
    );
  const conditions: string[] = [];
  if (type !== null) conditions.push(`q.event_type = ${bind(type)}`);
  if (reason !== null) conditions.push(`q.reason = ${bind(reason)}`);
  if (filter.onlyDead) conditions.push('not q.replaying');
  const text = `
     select d.id, d.endpoint_id, d.tenant, d.event_type, d.reason, d.replaying, d.dead_at, d.dead_at as finished_at,
            case when q.id is null then 'dead'
                 when q.attempts > q.attempts_before_replay then 'retrying' else 'pending' end as status,
            coalesce(q.attempts, d.attempts) as attempts, d.replays, q.due_at,
            coalesce(q.last_status_code, d.last_status_code) as last_status_code,
            coalesce(q.last_error_class, d.last_error_class) as last_error_class,
            null as waits_for, null as discard, ${batchIdOf('d')} as batch_id,
            null::uuid as debounced_by, d.reached_id
       from (${listQuery('dead_letters', 'q.*', range, conditions, '$1')}) d
       left join posthorn.queue q on q.id = d.id and d.replaying
      order by d.id desc`;
  return { text, values };
}

/**
 * Common table expressions that move the dead letters of `chunk (id, endpoint_id)` into history; `moved (id,
 * endpoint_id)` has those that were moved. Dead letters that are being replayed stay. The reason why each one died is
 * kept, so that a discard can be undone. `who` and `why` are SQL.
 */
export const discardMoves = (who: string, why: string): string => `
    removed as (
      delete from posthorn.dead_letters d using chunk c where d.id = c.id and not d.replaying
      returning d.*
    ),
    discarded as (
      insert into posthorn.deliveries
             (id, endpoint_id, status, reason, attempts, replays, last_status_code, last_error_class, finished_at, tenant,
              event_type, discard)
      select id, endpoint_id, 'discarded', ${who}::text, attempts, replays, last_status_code, last_error_class, now(), tenant,
             event_type, jsonb_build_object('why', ${why}::text, 'reason', reason, 'dead_at', dead_at, 'blocks_lane', blocks_lane)
        from removed
          on conflict (id) do nothing
    ),
    moved as (select id, endpoint_id from removed)`;

const DISCARD = {
  name: 'discard_dead_letters',
  text: `
    with chunk as materialized (select id from unnest($1::uuid[]) as t(id)),
    ${discardMoves('$2', '$3')}
    select id from moved`,
};

/** Returns false if the delivery is not dead, or is being replayed. */
export async function discardDeadLetter(
  client: Queryable,
  id: Uuid,
  who: string,
  why: string | null,
): Promise<boolean> {
  const { rowCount } = await client.query({ ...DISCARD, values: [`{${id}}`, who, why] });
  return rowCount === 1;
}

/** Undoes a discard. Returns false if the delivery was not discarded within `withinMs`. */
export async function restoreDeadLetter(client: Queryable, id: Uuid, withinMs: number): Promise<boolean> {
  const { rowCount } = await client.query(
    `with restored as (
       delete from posthorn.deliveries
        where id = $1 and status = 'discarded' and discard is not null and reason <> 'expunged'
          and finished_at >= now() - make_interval(secs => $2::float8 / 1000)
       returning *
     )
     insert into posthorn.dead_letters
            (id, endpoint_id, reason, attempts, replays, blocks_lane, last_status_code, last_error_class, dead_at, tenant, event_type)
     select id, endpoint_id, discard ->> 'reason', attempts, replays, (discard ->> 'blocks_lane')::boolean, last_status_code,
            last_error_class, (discard ->> 'dead_at')::timestamptz, tenant, event_type
       from restored
         on conflict (id) do nothing`,
    [id, withinMs],
  );
  return rowCount === 1;
}
