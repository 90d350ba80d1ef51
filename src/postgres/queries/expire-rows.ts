/** Deletes rows whose retention ends before that of their partition. */
import { firstIdAt, type Uuid } from '../../domain/ids.ts';
import { operationalTypes } from '../../domain/operational.ts';
import type { ExpiredDeadLetters } from '../../ports/retention-store.ts';
import { inTransaction, type Pool } from '../database.ts';
import { deleteConversions } from './conversions.ts';
import { discardMoves } from './dead-letters.ts';
import { hasHistory, isEventNeeded, isRestored } from './needed-events.ts';

/**
 * Deletes a chunk of payloads of the oldest partition that ended before `cutoffMs` and has payloads. Returns false if there
 * is no such partition. The cursor moves in the same commit.
 *
 * One statement locks the rows, and the next one checks whether they are needed. A replay locks the event too (queries/replay.ts).
 * So either the second statement sees the replay, or the replay finds the payload deleted.
 */
export async function stripPayloads(pool: Pool, cutoffMs: number, max: number): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    const { rows: partitions } = await client.query<{ name: string; after: Uuid; until: Uuid }>(
      `select name, coalesce(stripped_to, posthorn.first_id_at(from_at)) as after, posthorn.first_id_at(to_at) as until
         from posthorn.partitions
        where parent = 'events' and state = 'attached' and not kept and stripped_at is null
          and to_at <= to_timestamp($1::float8 / 1000)
        order by from_at limit 1 for update`,
      [cutoffMs],
    );
    const partition = partitions[0];
    if (partition === undefined) return false;
    const { rows } = await client.query<{ id: Uuid }>(
      'select e.id from posthorn.events e where e.id > $1 and e.id < $2 order by e.id limit $3 for update',
      [partition.after, partition.until, max],
    );
    await client.query(
      `update posthorn.events e set data = null
        where e.id = any ($1::uuid[]) and e.data is not null and not ${isEventNeeded('e')}`,
      [rows.map(({ id }) => id)],
    );
    await deleteConversions(
      client,
      rows.map(({ id }) => id),
    );
    await client.query(
      `update posthorn.partitions set stripped_to = coalesce($2::uuid, stripped_to), stripped_at = case when $3 then now() end
        where name = $1`,
      [partition.name, rows.at(-1)?.id ?? null, rows.length < max],
    );
    return true;
  });
}

/** Discards dead letters that expired, and writes a note for each endpoint, which becomes an operational event. */
export async function expireDeadLetters(
  pool: Pool,
  cutoffMs: number,
  max: number,
): Promise<ExpiredDeadLetters> {
  const { rows } = await pool.query<{ count: number; endpoint_ids: Uuid[] }>(
    `with chunk as materialized (
       select id from posthorn.dead_letters where dead_at < to_timestamp($1::float8 / 1000) and not replaying
        order by dead_at limit $2 for update skip locked
     ),
     ${discardMoves("'retention'", "'Its retention has ended.'")},
     noted as (
       insert into posthorn.operational_notes (kind, endpoint_id, detail)
       select '${operationalTypes.deadLettersExpired}', endpoint_id, json_build_object('count', count(*))
         from removed where event_type not like 'posthorn.%' group by endpoint_id
     ),
     counted as (
       insert into posthorn.expired_dead_letters as x (day, count)
       select (now() at time zone 'UTC')::date, count(*) from moved having count(*) > 0
           on conflict (day) do update set count = x.count + excluded.count
     )
     select (select count(*)::int from moved) as count, array(select distinct endpoint_id::text from moved) as endpoint_ids`,
    [cutoffMs, max],
  );
  return { count: rows[0]!.count, endpointIds: rows[0]!.endpoint_ids };
}

export async function listTenantRetentions(pool: Pool): Promise<{ tenant: string; days: number }[]> {
  const { rows } = await pool.query<{ tenant: string; days: number }>(
    'select id as tenant, retention_days as days from posthorn.tenants where retention_days is not null order by id',
  );
  return rows;
}

/** An event of a large fan-out has many deliveries. Deletes whole events, so a single event may have more than this. */
const DELIVERIES_PER_CHUNK = 10_000;

/**
 * Deletes a chunk of a tenant's old events with their history. An event that a waiting or dead delivery needs stays, and so
 * do the attempts of that delivery. The events are locked first, as in `stripPayloads`.
 */
export async function deleteTenantEvents(
  pool: Pool,
  tenant: string,
  cutoffMs: number,
  after: Uuid | null,
  max: number,
): Promise<Uuid | null> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ id: Uuid; deliveries: number }>(
      `select e.id, e.deliveries from posthorn.events e where e.tenant = $1 and (e.tenant, e.id) > ($1, $2::uuid) and e.id < $3
        and not ${isRestored('e.id')}
        order by e.tenant, e.id limit $4 for update`,
      [tenant, after ?? firstIdAt(0), firstIdAt(cutoffMs), max],
    );
    let deliveries = 0;
    const tooMany = rows.findIndex((row, n) => {
      deliveries += row.deliveries;
      return n > 0 && deliveries > DELIVERIES_PER_CHUNK;
    });
    const ids = rows.slice(0, tooMany === -1 ? max : tooMany).map(({ id }) => id);
    if (ids.length > 0) {
      await client.query(
        `delete from posthorn.deliveries h using unnest($1::uuid[]) as e(id)
          where h.id between e.id and posthorn.last_delivery_id(e.id) and h.finished_at < to_timestamp($2::float8 / 1000)`,
        [ids, cutoffMs],
      );
      await client.query(
        `delete from posthorn.attempts a using unnest($1::uuid[]) as e(id)
          where a.delivery_id between e.id and posthorn.last_delivery_id(e.id)
            and not exists (select from posthorn.queue q where q.id = a.delivery_id)
            and not exists (select from posthorn.dead_letters d where d.id = a.delivery_id)
            and not exists (select from posthorn.deliveries h where h.id = a.delivery_id)`,
        [ids],
      );
      await client.query(
        `delete from posthorn.events e
          where e.id = any ($1::uuid[]) and not ${isEventNeeded('e')}
            and not ${hasHistory('e')}`,
        [ids],
      );
      await deleteConversions(client, ids);
    }
    return rows.length < max && tooMany === -1 ? null : ids.at(-1)!;
  });
}
