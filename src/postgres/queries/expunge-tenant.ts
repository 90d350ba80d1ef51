/** Deletes every row of a tenant, a chunk at a time. */
import { firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import { tenantsNamedIn } from '../../domain/operational-tenants.ts';
import type { Client } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';
import { deleteConversions } from './conversions.ts';
import { announceChanges } from './endpoints.ts';
import { expungePayload, waitForRestore } from './expunge-payload.ts';
import { expungeTasksOf } from './expunge-tasks.ts';
import type { Selection } from './select-deliveries.ts';

/** The selection of a task that expunges a tenant, without its name. */
export const WHOLE_TENANT: Selection = {
  tenant: null,
  endpointId: null,
  statuses: [],
  type: null,
  reason: null,
  since: null,
  until: null,
  ids: null,
};

/**
 * Stops everything that could make new data: the tenant is closed, its keys are revoked and its endpoints deleted. Writes the
 * tombstone. Returns false if that was done before.
 */
export async function closeTenant(client: Client, tenant: string): Promise<boolean> {
  const { rowCount } = await client.query(
    'update posthorn.tenants set expunging_at = now() where id = $1 and expunging_at is null',
    [tenant],
  );
  if (rowCount === 0) return false;
  await expungeTasksOf(client, tenant);
  await client.query(
    'update posthorn.api_keys set revoked_at = now() where tenant = $1 and revoked_at is null',
    [tenant],
  );
  await client.query('delete from posthorn.console_sessions where tenant = $1', [tenant]);
  const { rows: deleted } = await client.query<{ id: Uuid }>(
    'update posthorn.endpoints set deleted_at = now() where tenant = $1 and deleted_at is null returning id',
    [tenant],
  );
  await client.query(
    `insert into posthorn.expunged (kind, id, at, endpoint_ids)
     values ('tenant', $1, greatest(now(), to_timestamp($2::float8 / 1000)), array(select id from posthorn.endpoints where tenant = $1))
         on conflict (kind, id) do update
        set at = excluded.at, endpoint_ids = excluded.endpoint_ids || posthorn.expunged.endpoint_ids, applied_at = null, seq = default`,
    [tenant, await readNewestTime(client, tenant)],
  );
  for (const channel of ['tenants', 'keys'] as const)
    await client.query(`select pg_notify('${CHANNEL_NAMES[channel]}', '')`);
  await announceChanges(
    client,
    deleted.map(({ id }) => id),
  );
  return true;
}

/**
 * The time in the id of the newest event, plus a millisecond. A tombstone covers what was published before it, and the clock of
 * the database may have been set back.
 */
async function readNewestTime(client: Client, tenant: string): Promise<number> {
  const { rows } = await client.query<{ id: Uuid }>(
    'select id from posthorn.events where tenant = $1 order by tenant desc, id desc limit 1',
    [tenant],
  );
  return rows[0] === undefined ? 0 : timeOfId(rows[0].id) + 1;
}

/** Tasks of alias `k` that expunge the tenant in this SQL and have not ended. */
export const openExpunges = (tenant: string): string =>
  `posthorn.tasks k where k.kind = 'expunge' and k.state in ('queued', 'running') and k.selection ->> 'tenant' = ${tenant}`;

/** Returns false if the tenant is closed because its expunge failed: it needs a new task. */
export async function hasOpenExpunge(client: Client, tenant: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select exists (select from ${openExpunges('$1')}) as found`,
    [tenant],
  );
  return rows[0]!.found;
}

/** Counts the events of a tenant up to `max`. */
export async function countTenantEvents(client: Client, tenant: string, max: number): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'select count(*)::int as count from (select from posthorn.events where tenant = $1 limit $2) as found',
    [tenant, max],
  );
  return rows[0]!.count;
}

/** Deletes up to `max` events with their deliveries and attempts, or as many other rows. Returns how many. */
export async function deleteTenantRows(
  client: Client,
  task: { readonly id: Uuid; readonly tenant: string },
  max: number,
): Promise<number> {
  // Slices first: they would become deliveries.
  const slices = await client.query(DELETE_SLICES, [task.tenant, max]);
  if (slices.rowCount) return slices.rowCount;
  const events = await deleteEvents(client, task.tenant, max);
  if (events > 0) return events;
  const deliveries = await deleteDeliveries(client, task.tenant, max);
  if (deliveries > 0) return deliveries;
  let deleted = 0;
  for (const statement of OTHER_ROWS)
    deleted += (await client.query(statement, [task.tenant, max])).rowCount ?? 0;
  deleted += await deleteRejectedBodies(client, task.tenant);
  const { rowCount } = await client.query('delete from posthorn.tasks where tenant = $1 and id <> $2', [
    task.tenant,
    task.id,
  ]);
  return deleted + (rowCount ?? 0);
}

async function deleteEvents(client: Client, tenant: string, max: number): Promise<number> {
  const { rows } = await client.query<{ id: Uuid }>(
    `select e.id from posthorn.events e where e.tenant = $1 and (e.tenant, e.id) > ($1, '00000000-0000-0000-0000-000000000000')
      order by e.tenant, e.id limit $2 for update`,
    [tenant, max],
  );
  if (rows.length === 0) return 0;
  const ids = rows.map(({ id }) => id);
  // The queue first: from then on no attempt of these deliveries can be recorded.
  for (const [table, key] of [
    ['queue', 'id'],
    ['dead_letters', 'id'],
    ['deliveries', 'id'],
    ['attempts', 'delivery_id'],
  ])
    await client.query(
      `delete from posthorn.${table} r using unnest($1::uuid[]) as e(id)
        where r.${key} between e.id and posthorn.last_delivery_id(e.id)`,
      [ids],
    );
  await client.query('delete from posthorn.events where id = any ($1::uuid[])', [ids]);
  await client.query('select posthorn.expunge_copies($1::uuid[])', [ids]);
  await deleteConversions(client, ids);
  return ids.length;
}

/** Deletes deliveries to the tenant's endpoints whose event no longer exists. */
async function deleteDeliveries(client: Client, tenant: string, max: number): Promise<number> {
  let deleted = 0;
  for (const table of ['queue', 'dead_letters', 'deliveries']) {
    const { rows } = await client.query<{ id: Uuid }>(
      `delete from posthorn.${table}
        where id = any (array(select d.id from posthorn.endpoints e join posthorn.${table} d on d.endpoint_id = e.id
                               where e.tenant = $1 limit $2))
        returning id`,
      [tenant, max],
    );
    await client.query('delete from posthorn.attempts where delivery_id = any ($1::uuid[])', [
      rows.map(({ id }) => id),
    ]);
    deleted += rows.length;
  }
  return deleted;
}

const byTenant = (table: string): string =>
  `delete from posthorn.${table} where ctid = any (array(select ctid from posthorn.${table} where tenant = $1 limit $2))`;
const byEndpoint = (table: string): string =>
  `delete from posthorn.${table}
    where ctid = any (array(select r.ctid from posthorn.endpoints e join posthorn.${table} r on r.endpoint_id = e.id
                             where e.tenant = $1 limit $2))`;

const DELETE_SLICES = byTenant('fan_out_slices');

const OTHER_ROWS: readonly string[] = [
  ...[
    'outbox',
    'outbox_rejected',
    'kafka_records',
    'idempotency_keys',
    'audit_log',
    'event_stats',
    'inboxes',
    'schema_failures',
    'console_sessions',
    'notice_digests',
    'confirmation_mails',
    'idempotent_requests',
  ].map(byTenant),
  ...[
    'endpoint_stats',
    'endpoint_skips',
    'endpoint_health',
    'endpoint_secrets',
    'operational_notes',
    'batches',
    'open_batches',
    'debounce_keys',
    'debounce_windows',
    'debounced',
    'notice_digests',
  ].map(byEndpoint),
  `delete from posthorn.operational_state
    where ctid = any (array(select s.ctid from posthorn.endpoints e join posthorn.operational_state s on s.subject = e.id::text
                             where e.tenant = $1 limit $2))`,
  // Requests with keys of the tenant. Requests with an admin key name the tenant that they are about.
  `delete from posthorn.idempotent_requests
    where ctid = any (array(select r.ctid from posthorn.api_keys k
                              join posthorn.idempotent_requests r on r.owner = posthorn.public_id('key', k.id)
                             where k.tenant = $1 limit $2))`,
  // The shape of these rows is unknown, so a row with the name anywhere is deleted.
  `delete from posthorn.stats_unreadable
    where ctid = any (array(select ctid from posthorn.stats_unreadable where strpos(counts, to_json($1::text)::text) > 0 limit $2))`,
];

/** Bodies may be large. */
const BODIES_PER_PAGE = 20;

/** Deletes bodies of relays whose field `tenant` is this tenant. SQL only finds candidates: a body need not be JSON. */
async function deleteRejectedBodies(client: Client, tenant: string): Promise<number> {
  let deleted = 0;
  let last: { readonly source: string; readonly id: Uuid } | undefined;
  do {
    const { rows } = await client.query<{ source: string; id: Uuid; body: Buffer }>(
      `select source, id, body from posthorn.relay_rejected
        where (source, id) > ($2, $3::uuid)
          and (position(convert_to($1, 'UTF8') in body) > 0 or position(convert_to('\\u', 'UTF8') in body) > 0)
        order by source, id limit $4`,
      [tenant, last?.source ?? '', last?.id ?? firstIdAt(0), BODIES_PER_PAGE],
    );
    const found = rows.filter(({ body }) => parse(body)?.tenant === tenant);
    await client.query(
      `delete from posthorn.relay_rejected r using unnest($1::text[], $2::uuid[]) as f(source, id)
        where r.source = f.source and r.id = f.id`,
      [found.map(({ source }) => source), found.map(({ id }) => id)],
    );
    deleted += found.length;
    last = rows.length < BODIES_PER_PAGE ? undefined : rows.at(-1);
  } while (last !== undefined);
  return deleted;
}

/** Returns null if it is not JSON. */
function parse(text: Buffer): { readonly tenant?: unknown } | null {
  try {
    return JSON.parse(text.toString());
  } catch {
    return null;
  }
}

/**
 * Expunges operational events about a tenant in the operator's own tenant. Returns where to continue, or null at the end.
 */
export async function expungeOperationalEvents(
  client: Client,
  about: { readonly tenant: string; readonly operatorTenant: string },
  after: Uuid,
  max: number,
): Promise<Uuid | null> {
  const { tenant, operatorTenant } = about;
  if (tenant === operatorTenant) return null;
  await waitForRestore(client);
  const { rows } = await client.query<{ id: Uuid; candidate: Buffer | null }>(
    `select e.id, case when e.type like 'posthorn.%'
                        and position(convert_to('"tenant":' || to_json($2::text)::text, 'UTF8') in e.data) > 0
                       then e.data end as candidate
       from posthorn.events e
      where e.tenant = $1 and (e.tenant, e.id) > ($1, $3::uuid) order by e.tenant, e.id limit $4`,
    [operatorTenant, tenant, after, max],
  );
  for (const { id, candidate } of rows)
    if (candidate !== null && tenantsNamedIn(candidate).includes(tenant))
      await expungePayload(client, { id, tenant: operatorTenant }, 'expunge');
  return rows.length < max ? null : rows.at(-1)!.id;
}

/** Where the entries of the journal (queries/stats-journal.ts) name their tenant. */
const NAMES_TENANT = '$.accepted[*][0] == $tenant || $.attempts[*][1] == $tenant || $.dead[*][1] == $tenant';

/** Whether statistics of the tenant are still to be added up. */
export async function hasUncountedStatistics(client: Client, tenant: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select exists (select from posthorn.stats_journal
                     where case when strpos(counts, to_json($1::text)::text) > 0
                                then jsonb_path_match(counts::jsonb, '${NAMES_TENANT}', jsonb_build_object('tenant', $1::text), true)
                           end) as found`,
    [tenant],
  );
  return rows[0]!.found;
}

/** Deletes what the steps before needed: endpoints, keys and the tenant itself. */
export async function deleteClosedTenant(client: Client, tenant: string): Promise<void> {
  for (const table of ['endpoint_secrets', 'endpoint_health', 'endpoint_skips'])
    await client.query(
      `delete from posthorn.${table} where endpoint_id in (select id from posthorn.endpoints where tenant = $1)`,
      [tenant],
    );
  for (const table of ['endpoints', 'api_keys'])
    await client.query(`delete from posthorn.${table} where tenant = $1`, [tenant]);
  await client.query('delete from posthorn.tenants where id = $1', [tenant]);
  await client.query(
    "update posthorn.expunged set applied_at = now(), seq = default where kind = 'tenant' and id = $1",
    [tenant],
  );
  await client.query(`select pg_notify('${CHANNEL_NAMES.tenants}', '')`);
}
