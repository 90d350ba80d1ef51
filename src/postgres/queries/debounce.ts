import { firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import type { NewDelivery } from '../../ports/accept-log.ts';
import {
  DEBOUNCE_PAUSE_MS,
  type DebounceDecision,
  type DebounceRequest,
  FIRST_PAUSE_MS,
  SEND_AS_IT_IS,
} from '../../ports/debouncer.ts';
import { type Client, inTransaction, type Pool } from '../database.ts';

export const hasDebounceKey = ({ debounceKey }: NewDelivery): boolean => (debounceKey ?? null) !== null;

/**
 * Stores the keys of deliveries that are about to be written. Call it before: a delivery is never visible without its
 * key. Keys of deliveries that are not written after all are harmless.
 */
export async function storeDebounceKeys(pool: Pool, deliveries: readonly NewDelivery[]): Promise<void> {
  const keyed = deliveries.filter(hasDebounceKey);
  if (keyed.length === 0) return;
  await pool.query({
    name: 'store_debounce_keys',
    text: `insert into posthorn.debounce_keys (delivery_id, endpoint_id, key, since)
           select id, endpoint_id, key, to_timestamp(since)
             from unnest($1::uuid[], $2::uuid[], $3::text[], $4::float8[]) as t(id, endpoint_id, key, since)
               on conflict (delivery_id) do update set endpoint_id = excluded.endpoint_id, key = excluded.key`,
    values: [
      keyed.map(({ id }) => id),
      keyed.map(({ endpointId }) => endpointId),
      keyed.map(({ debounceKey }) => debounceKey),
      keyed.map(({ id }) => timeOfId(id) / 1000),
    ],
  });
}

interface Group {
  readonly newest: Uuid;
  readonly newest_seq: string;
  readonly since: number;
  readonly count: number;
  readonly is_busy: boolean;
}

export function decideDebounce(pool: Pool, request: DebounceRequest): Promise<DebounceDecision> {
  const { deliveryId, endpointId, settings } = request;
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ key: string | null; chosen: boolean; replays: number }>(
      `select k.key, k.chosen, q.replays
         from posthorn.queue q left join posthorn.debounce_keys k on k.delivery_id = q.id and k.endpoint_id = $2
        where q.id = $1`,
      [deliveryId, endpointId],
    );
    const own = rows[0];
    if (own === undefined) return { ...SEND_AS_IT_IS, kind: 'gone' };
    if (own.key === null || own.replays > 0) return SEND_AS_IT_IS;
    if (settings.mode === 'first') return decideFirst(client, request, own.key);
    return own.chosen ? sendChosen(client, request, own.key) : decideLast(client, request, own.key);
  });
}

/** The waiting deliveries of a key. Replays are never debounced. With `before`, only those accepted before that time. */
const GROUP = `
  from posthorn.debounce_keys k join posthorn.queue q on q.id = k.delivery_id
 where k.endpoint_id = $1 and k.key = $2 and q.replays = 0 and ($4::uuid is null or q.id < $4)`;

async function readGroup(
  client: Client,
  { endpointId, underWay }: DebounceRequest,
  key: string,
  before: Uuid | null,
): Promise<Group | null> {
  const { rows } = await client.query<Group & { newest: Uuid | null }>(
    `select (array_agg(q.id order by q.seq desc))[1] as newest, max(q.seq) as newest_seq, count(*)::int as count,
            extract(epoch from min(k.since))::float8 * 1000 as since,
            coalesce(bool_or(q.id = any ($3::uuid[])), false) as is_busy ${GROUP}`,
    [endpointId, key, underWay, before],
  );
  return rows[0]!.newest === null ? null : rows[0]!;
}

async function decideLast(client: Client, request: DebounceRequest, key: string): Promise<DebounceDecision> {
  const { deliveryId, settings, now } = request;
  const group = (await readGroup(client, request, key, null))!;
  if (group.is_busy) return waitUntil(now + DEBOUNCE_PAUSE_MS);
  const sendAt = Math.min(timeOfId(group.newest) + settings.windowMs, group.since + settings.maxWaitMs);
  const skipped = await supersede(client, request, key, group.newest, group.newest, null);
  if (deliveryId === group.newest)
    return now >= sendAt
      ? { ...SEND_AS_IT_IS, debounced: await countDebounced(client, deliveryId), skipped }
      : { ...waitUntil(sendAt), skipped };
  if (now >= sendAt) await makeDue(client, group.newest);
  return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
}

/** `max_wait_ms` was over when this was the newest one: it is sent, whatever has come since. */
async function sendChosen(client: Client, request: DebounceRequest, key: string): Promise<DebounceDecision> {
  const { deliveryId } = request;
  const skipped = await supersede(client, request, key, deliveryId, deliveryId, deliveryId);
  return { ...SEND_AS_IT_IS, debounced: await countDebounced(client, deliveryId), skipped };
}

async function decideFirst(client: Client, request: DebounceRequest, key: string): Promise<DebounceDecision> {
  const { deliveryId, endpointId, settings } = request;
  const acceptedAt = timeOfId(deliveryId);
  const window = await openWindow(client, request, key, acceptedAt + settings.windowMs);
  if (window.first_id === deliveryId)
    return { ...SEND_AS_IT_IS, debounced: await countDebounced(client, deliveryId) };
  const end = firstIdAt(window.until);
  const { rows } = await client.query<{ waits: boolean; delivered: boolean }>(
    `select exists (select from posthorn.queue where id = $1) as waits,
            exists (select from posthorn.deliveries where id = $1 and status = 'delivered') as delivered`,
    [window.first_id],
  );
  const { waits, delivered } = rows[0]!;
  const group = (await readGroup(client, request, key, end)) ?? null;
  if (delivered || group === null) {
    const skipped = await supersede(client, request, key, window.first_id, null, end);
    return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
  }
  if (waits) {
    // Only the newest one may be needed, if the first one dies.
    const newest = await newestBut(client, request, key, window.first_id, end);
    const skipped = await supersede(client, request, key, window.first_id, newest, end);
    if (deliveryId === newest) await postponeBehind(client, deliveryId, window.first_id);
    return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
  }
  // The first one died: the newest takes its place.
  await client.query(
    'update posthorn.debounce_windows set first_id = $3 where endpoint_id = $1 and key = $2',
    [endpointId, key, group.newest],
  );
  await client.query('update posthorn.debounced set by_id = $2 where by_id = $1', [
    window.first_id,
    group.newest,
  ]);
  const skipped = await supersede(client, request, key, group.newest, group.newest, end);
  if (deliveryId === group.newest)
    return { ...SEND_AS_IT_IS, debounced: await countDebounced(client, deliveryId), skipped };
  await makeDue(client, group.newest);
  return { ...SEND_AS_IT_IS, kind: 'gone', skipped };
}

/** Returns the window of the key. If there is none, or it has ended before this delivery, the delivery opens one. */
async function openWindow(
  client: Client,
  { deliveryId, endpointId }: DebounceRequest,
  key: string,
  until: number,
): Promise<{ first_id: Uuid; until: number }> {
  const { rows } = await client.query<{ first_id: Uuid; until: number }>(
    `insert into posthorn.debounce_windows as w (endpoint_id, key, first_id, until) values ($1, $2, $3, to_timestamp($4))
         on conflict (endpoint_id, key) do update
        set first_id = case when w.until <= to_timestamp($5) then excluded.first_id else w.first_id end,
            until = case when w.until <= to_timestamp($5) then excluded.until else w.until end
     returning first_id, extract(epoch from until)::float8 * 1000 as until`,
    [endpointId, key, deliveryId, until / 1000, timeOfId(deliveryId) / 1000],
  );
  return rows[0]!;
}

async function newestBut(
  client: Client,
  { endpointId, underWay }: DebounceRequest,
  key: string,
  except: Uuid,
  end: Uuid,
): Promise<Uuid | null> {
  const { rows } = await client.query<{ id: Uuid }>(
    `select q.id ${GROUP} and q.id <> $5 and q.id <> all ($3::uuid[]) order by q.seq desc limit 1`,
    [endpointId, key, underWay, end, except],
  );
  return rows[0]?.id ?? null;
}

/**
 * Ends the waiting deliveries of the key before `end` (null: all) as skipped, in favour of `by`. `kept` stays. Those under
 * way stay too. Deliveries that were skipped in favour of one of them now point to `by`.
 */
async function supersede(
  client: Client,
  { endpointId, underWay }: DebounceRequest,
  key: string,
  by: Uuid,
  kept: Uuid | null,
  end: Uuid | null,
): Promise<Uuid[]> {
  const { rows } = await client.query<{ id: Uuid }>(
    `with doomed as materialized (
       select q.id, k.since, k.debounced ${GROUP}
          and not k.chosen and q.id <> $5 and q.id is distinct from $6::uuid and q.id <> all ($3::uuid[])
     ),
     removed as (
       delete from posthorn.queue q using doomed d where q.id = d.id and q.id = any (array(select id from doomed))
       returning q.id, q.endpoint_id, q.attempts, q.replays, q.last_status_code, q.last_error_class, q.tenant, q.event_type
     ),
     ended as (
       insert into posthorn.deliveries
              (id, endpoint_id, status, reason, attempts, replays, last_status_code, last_error_class, finished_at, tenant, event_type)
       select id, endpoint_id, 'skipped', 'debounced', attempts, replays, last_status_code, last_error_class, now(), tenant, event_type
         from removed
     ),
     relinked as (
       update posthorn.debounced set by_id = $5 where by_id = any (array(select id from removed))
     ),
     linked as (
       insert into posthorn.debounced (delivery_id, endpoint_id, by_id) select id, endpoint_id, $5 from removed
           on conflict (delivery_id) do update set by_id = excluded.by_id
     ),
     forgotten as (
       delete from posthorn.debounce_keys where delivery_id = any (array(select id from removed))
     ),
     counted as (
       update posthorn.debounce_keys k
          set debounced = k.debounced + d.count, since = least(k.since, d.since)
         -- Only what this statement has removed: another decision may end the same deliveries at this moment.
         from (select sum(debounced + 1)::int as count, min(since) as since
                 from doomed where id in (select id from removed) having count(*) > 0) d
        where k.delivery_id = $5
     )
     select id from removed`,
    [endpointId, key, underWay, end, by, kept],
  );
  return rows.map(({ id }) => id);
}

async function countDebounced(client: Client, deliveryId: Uuid): Promise<number> {
  const { rows } = await client.query<{ debounced: number }>(
    'select debounced from posthorn.debounce_keys where delivery_id = $1',
    [deliveryId],
  );
  return rows[0]?.debounced ?? 0;
}

/** Makes a delivery due now, and has it sent even if newer ones come before it is. */
const makeDue = (client: Client, id: Uuid) =>
  client.query(
    `with chosen as (update posthorn.debounce_keys set chosen = true where delivery_id = $1)
     update posthorn.queue set due_at = date_trunc('milliseconds', now()) where id = $1 and due_at > now()`,
    [id],
  );

/** Makes a delivery due after another one, so that it does not take its place in a lane that holds few. */
const postponeBehind = (client: Client, id: Uuid, other: Uuid) =>
  client.query(
    `update posthorn.queue q
        set due_at = date_trunc('milliseconds', greatest(now(), f.due_at)) + make_interval(secs => $3::float8)
       from posthorn.queue f where q.id = $1 and f.id = $2`,
    [id, other, FIRST_PAUSE_MS / 1000],
  );

const waitUntil = (until: number): DebounceDecision => ({ ...SEND_AS_IT_IS, kind: 'wait', until });
