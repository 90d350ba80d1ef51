/**
 * Deletes the answers to batches that contained an expunged event. The answer to a batch is stored with every event of it, and
 * a receiver may have repeated the payload in its answer.
 */
import { firstIdAt, idPrefixes, parsePublicId, publicId, timeOfId, type Uuid } from '../../domain/ids.ts';
import { DAY_MS } from '../../domain/retention.ts';
import type { Client, Queryable } from '../database.ts';

/** SQL for the deliveries of the event $1. */
export const OF_EVENT = 'between $1::uuid and posthorn.last_delivery_id($1::uuid)';

/** How long results of requests that were under way may be recorded. Upkeep deletes them during this time. */
export const SETTLE_TIME = "interval '10 minutes'";

/** The longest time between the acceptance of an event and its batch. Used if the events of the batch are not known. */
const MAX_AGE_IN_BATCH_MS = 7 * DAY_MS;
/** By how much the clock of a worker, which dates batches, may differ from that of the database. */
const MAX_SKEW_MS = 5 * 60_000;

/** Batches that an event was sent in, and batches on the wire that contain it. Call it before its attempts are cleared. */
export async function findBatchesOfEvent(
  client: Client,
  eventId: Uuid,
  endpointIds: readonly Uuid[],
): Promise<Uuid[]> {
  const { rows: sent } = await client.query<{ id: string }>(
    `select distinct a.request_headers::json ->> 'webhook-id' as id from posthorn.attempts a
      where a.delivery_id ${OF_EVENT} and a.request_headers like '%"webhook-id":"${idPrefixes.batch}\\_%'`,
    [eventId],
  );
  const { rows: open } = await client.query<{ id: Uuid }>(
    `select o.id from posthorn.open_batches o join posthorn.batches b on b.id = o.id
      where o.endpoint_id = any ($2::uuid[]) and exists (select from unnest(b.delivery_ids) as d(id) where d.id ${OF_EVENT})`,
    [eventId, endpointIds],
  );
  const ids = sent.flatMap(({ id }) => parsePublicId(idPrefixes.batch, id) ?? []);
  return [...new Set([...ids, ...open.map(({ id }) => id)])].sort();
}

/** Batches with the event that were recorded while it was being expunged. */
export async function findLateBatches(client: Client, eventId: Uuid, expungedAtMs: number): Promise<Uuid[]> {
  const { rows } = await client.query<{ id: Uuid }>(
    `select distinct b.id from posthorn.deliveries d join posthorn.batches b on b.endpoint_id = d.endpoint_id and b.id > $2
      where d.id ${OF_EVENT} and d.reason = 'expunged' and d.id = any (b.delivery_ids)
        and not exists (select from posthorn.expunged x where x.kind = 'batch' and x.id = b.id::text)`,
    [eventId, firstIdAt(expungedAtMs - MAX_SKEW_MS)],
  );
  return rows.map(({ id }) => id).sort();
}

/** Two events of a batch may be expunged at the same time: the first one locks the batch, then both change its attempts. */
export async function lockBatches(client: Client, ids: readonly Uuid[]): Promise<void> {
  await client.query('select from posthorn.batches where id = any ($1::uuid[]) order by id for update', [
    ids,
  ]);
}

/** Deletes the answers to these batches, and their tombstones keep the archive and late results free of them. */
export async function expungeBatches(client: Client, tenant: string, ids: readonly Uuid[]): Promise<void> {
  if (ids.length === 0) return;
  await insertBatchTombstones(client, ids);
  await deleteBatchAnswers(client, ids);
  await deleteInboxCopies(
    client,
    tenant,
    ids.map((id) => publicId(idPrefixes.batch, id)),
  );
}

/** Marks batches as expunged. Their archived answers are removed by the next run of the archive. */
export async function insertBatchTombstones(client: Queryable, ids: readonly Uuid[]): Promise<void> {
  await client.query(
    `insert into posthorn.expunged (kind, id, first_id, last_id, applied_at, settle_until)
     select 'batch', t.id, coalesce(b.first_id, t.first_id), coalesce(b.last_id, t.last_id), now(), now() + ${SETTLE_TIME}
       from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as t(id, first_id, last_id)
       left join lateral (select (array_agg(d.id order by d.id))[1] as first_id, (array_agg(d.id order by d.id desc))[1] as last_id
                            from posthorn.batches b cross join unnest(b.delivery_ids) as d(id) where b.id = t.id) b on true
         on conflict (kind, id) do update set settle_until = excluded.settle_until, seq = default`,
    [ids, ids.map((id) => rangeOf(id)[0]), ids.map((id) => rangeOf(id)[1])],
  );
}

/** The range of ids that contains the deliveries of a batch whose record was deleted. */
function rangeOf(batchId: Uuid): [first: Uuid, last: Uuid] {
  const at = timeOfId(batchId);
  return [firstIdAt(at - MAX_AGE_IN_BATCH_MS), firstIdAt(at + MAX_SKEW_MS)];
}

const CLEAR_ANSWERS = `
  update posthorn.attempts
     set response_headers = null, response_body = null, response_truncated = false, error_message = null
   where (response_headers is not null or response_body is not null or error_message is not null)
     and request_headers like '%"webhook-id":"' || $1 || '"%'`;

/** Deletes the answers to these batches. Their requests stay: they contain no headers of events. */
export async function deleteBatchAnswers(client: Client, ids: readonly Uuid[]): Promise<void> {
  const { rows } = await client.query<{ id: Uuid; delivery_ids: Uuid[] }>(
    'select id, delivery_ids::text[] as delivery_ids from posthorn.batches where id = any ($1::uuid[])',
    [ids],
  );
  const known = new Map(rows.map(({ id, delivery_ids }) => [id, delivery_ids]));
  for (const id of ids) {
    const deliveries = known.get(id);
    const shown = publicId(idPrefixes.batch, id);
    const { rows: changed } =
      deliveries !== undefined
        ? await client.query<{ delivery_id: Uuid }>(
            `${CLEAR_ANSWERS} and delivery_id = any ($2::uuid[]) returning delivery_id`,
            [shown, deliveries],
          )
        : // Batches stay as long as whole partitions of attempts do, so there are few attempts to look through.
          await client.query<{ delivery_id: Uuid }>(
            `${CLEAR_ANSWERS} and delivery_id between $2::uuid and $3::uuid returning delivery_id`,
            [shown, ...rangeOf(id)],
          );
    if (changed.length > 0)
      await client.query('select posthorn.expunge_copies_of_attempts($1::uuid[])', [
        changed.map(({ delivery_id }) => delivery_id),
      ]);
  }
}

/** Deletes requests with one of these values of `webhook-id` from the inboxes of the tenant. */
export async function deleteInboxCopies(
  client: Client,
  tenant: string,
  webhookIds: readonly string[],
): Promise<void> {
  await client.query(
    `delete from posthorn.inbox_requests r using posthorn.inboxes i
      where i.token = r.token and i.tenant = $1 and r.headers ->> 'webhook-id' = any ($2::text[])`,
    [tenant, webhookIds],
  );
}
