/** Deletes the payload of an event, and everything that was derived from it. */
import type { Uuid } from '../../domain/ids.ts';
import { idPrefixes, publicId } from '../../domain/ids.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Client } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';
import { deleteConversions } from './conversions.ts';
import {
  deleteInboxCopies,
  expungeBatches,
  findBatchesOfEvent,
  lockBatches,
  OF_EVENT,
  SETTLE_TIME,
} from './expunge-batches.ts';

export const EXPUNGED = 'expunged';

/**
 * Waits for rows that a restore from the archive inserts at this moment, and keeps it from inserting more until the transaction ends.
 * Afterwards it sees the tombstone. Call it before the event is locked: a restore waits for rows that are being changed.
 */
export async function waitForRestore(client: Client): Promise<void> {
  await client.query('select pg_advisory_xact_lock_shared($1)', [ADVISORY_LOCKS.restores]);
}

/**
 * Returns the endpoints whose lanes changed. The order matters: when the waiting deliveries are gone, no further attempt of
 * them can be recorded, and the attempts that were recorded meanwhile are visible.
 */
export async function expungePayload(
  client: Client,
  event: { readonly id: Uuid; readonly tenant: string },
  who: string,
): Promise<Uuid[]> {
  const { id } = event;
  await client.query(
    `update posthorn.events
        set data = null,
            options = ((coalesce(options, '{}')::jsonb - 'headers' - 'schema_errors') || jsonb_build_object(
              'expunged_at', floor(extract(epoch from now()) * 1000), 'expunged_by', $2::text))::json
      where id = $1`,
    [id, who],
  );
  await client.query(SKIP_SLICES, [id]);
  for (const table of ['queue', 'dead_letters']) await client.query(lockDeliveries(table), [id]);
  const { rows } = await client.query<{ endpoint_id: Uuid }>(END_DELIVERIES, [id]);
  const endpointIds = rows.map(({ endpoint_id }) => endpoint_id);
  const batches = await findBatchesOfEvent(client, id, endpointIds);
  await lockBatches(client, batches);
  await client.query(
    `update posthorn.attempts
        set request_headers = '{}', response_headers = null, response_body = null, response_truncated = false, error_message = null
      where delivery_id ${OF_EVENT}`,
    [id],
  );
  await expungeBatches(client, event.tenant, batches);
  await deleteOtherCopies(client, event);
  // A delivery that waited may be on the wire, or about to be.
  await client.query(
    `insert into posthorn.expunged (kind, id, applied_at, settle_until)
     values ('event', $1, now(), case when $2 then now() + ${SETTLE_TIME} end)
         on conflict (kind, id) do update set applied_at = now(), settle_until = excluded.settle_until, seq = default`,
    [id, endpointIds.length > 0],
  );
  await client.query(`select pg_notify('${CHANNEL_NAMES.expunged}', $1)`, [id]);
  return endpointIds;
}

/**
 * Deliveries of a large fan-out that are not written yet. A statement before the next one: it waits for the process that writes
 * a slice, and the next one sees what that process wrote.
 */
const SKIP_SLICES = `
  with slices as (
    delete from posthorn.fan_out_slices where event_id = $1 returning *
  )
  insert into posthorn.deliveries (id, endpoint_id, status, reason, attempts, replays, finished_at, tenant, event_type)
  select case substr($1::text, 15, 1) when '8' then left($1::text, 31) || lpad(to_hex(s.first_ordinal + t.n - 1), 5, '0')
              else left($1::text, 32) || lpad(to_hex(s.first_ordinal + t.n - 1), 4, '0') end::uuid,
         t.endpoint_id, 'skipped', '${EXPUNGED}', 0, 0, now(), s.tenant, s.event_type
    from slices s cross join unnest(s.endpoint_ids) with ordinality as t(endpoint_id, n)`;

/**
 * Waits for replays and results that are not committed yet, so that the next statement sees the rows that they moved. Locks
 * the rows in the same order as a replay.
 */
const lockDeliveries = (table: string): string =>
  `select from posthorn.${table} where id ${OF_EVENT} order by id for update`;

/** Waiting ones end as skipped, dead ones as discarded. A dead letter that is being replayed is in both tables. */
const END_DELIVERIES = `
  with waiting as (
    delete from posthorn.queue where id ${OF_EVENT} returning *
  ),
  dead as (
    delete from posthorn.dead_letters where id ${OF_EVENT} returning *
  ),
  discarded as (
    insert into posthorn.deliveries
           (id, endpoint_id, status, reason, attempts, replays, last_status_code, last_error_class, finished_at, tenant, event_type, discard)
    select d.id, d.endpoint_id, 'discarded', '${EXPUNGED}', d.attempts, d.replays, d.last_status_code, d.last_error_class, now(),
           d.tenant, d.event_type, jsonb_build_object('why', 'Its payload was deleted.', 'reason', d.reason, 'dead_at', d.dead_at,
                                                      'blocks_lane', d.blocks_lane)
      from dead d
  ),
  skipped as (
    insert into posthorn.deliveries
           (id, endpoint_id, status, reason, attempts, replays, last_status_code, last_error_class, finished_at, tenant, event_type)
    select w.id, w.endpoint_id, 'skipped', '${EXPUNGED}', w.attempts, w.replays, w.last_status_code, w.last_error_class, now(),
           w.tenant, w.event_type
      from waiting w where not exists (select from dead d where d.id = w.id)
  )
  select endpoint_id from waiting union select endpoint_id from dead`;

/** Deletes values that other tables derived from the payload: hashes, paths and debounce keys. */
async function deleteOtherCopies(
  client: Client,
  { id, tenant }: { readonly id: Uuid; readonly tenant: string },
): Promise<void> {
  await client.query('select posthorn.expunge_copies(array[$1::uuid])', [id]);
  await deleteConversions(client, [id]);
  // The idempotency key stays, so that a repeated request is refused. Its hash goes: it could confirm a guess of the payload.
  await client.query(
    'update posthorn.idempotency_keys set fingerprint = sha256(uuid_send(gen_random_uuid())) where tenant = $1 and event_id = $2',
    [tenant, id],
  );
  // Paths may contain names of fields that the payload has.
  await client.query('delete from posthorn.schema_failures where tenant = $1 and event_id = $2', [
    tenant,
    id,
  ]);
  // Keys are hashes of a value in the payload.
  await client.query(`delete from posthorn.debounce_keys where delivery_id ${OF_EVENT}`, [id]);
  await client.query(`delete from posthorn.debounce_windows where first_id ${OF_EVENT}`, [id]);
  await deleteInboxCopies(client, tenant, [publicId(idPrefixes.event, id)]);
}
