import type { AdaptiveRecord } from '../../domain/adaptive-limits.ts';
import type { Circuit } from '../../domain/breaker.ts';
import type { DisabledReason, SignatureSetting } from '../../domain/endpoint.ts';
import type { EndpointConfig, EndpointRecord } from '../../domain/endpoint-config.ts';
import { patternsMatching } from '../../domain/event.ts';
import { idPrefixes, publicId, type Uuid } from '../../domain/ids.ts';
import { operationalTypes } from '../../domain/operational.ts';
import type { Client, Pool } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';
import type { Sealed } from '../secret-box.ts';
import { insertOwnAuditEntry } from './audit-log.ts';
import { noteEndpoint } from './operational-notes.ts';
import { restartSkippedCount } from './skipped-deliveries.ts';

/** An endpoint as it is stored, with the state of its circuit and the number of its deliveries. */
export interface EndpointView {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly description: string;
  readonly config: EndpointConfig;
  readonly metadata: Record<string, unknown>;
  readonly enabled: boolean;
  readonly disabled_reason: DisabledReason | null;
  readonly paused: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly circuit: Circuit | null;
  readonly consecutive_failures: number | null;
  readonly opened_at: Date | null;
  readonly next_probe_at: Date | null;
  readonly adaptive: AdaptiveRecord | null;
  readonly waiting: number;
  /** The id of the oldest delivery that waits; its time is when the event was accepted. */
  readonly oldest_waiting: Uuid | null;
  readonly dead: number;
  /** Where counting `waiting` and `dead` stopped. */
  readonly count_limit: number;
  readonly skipped_while_disabled: number;
  /** When each active secret was created and when it expires, the current one first. In milliseconds since 1970. */
  readonly secrets: readonly SecretTimes[] | null;
}

export interface SecretTimes {
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly mainFrom: number | null;
  readonly signature: SignatureSetting | null;
}

/** Counting stops here, because the tables grow without bound. */
export const COUNT_LIMIT = 10_000;
/** How many rows a page of endpoints may count in all. Each endpoint gets an equal share, at least MIN_COUNT_LIMIT. */
const COUNT_LIMIT_OF_PAGE = 50_000;
const MIN_COUNT_LIMIT = 200;

const selectEndpoints = (countLimit: number): string => `
  select e.id, e.tenant, e.url, e.description, e.config, e.metadata, e.enabled, e.disabled_reason, e.paused,
         e.created_at, e.updated_at, h.circuit, h.consecutive_failures, h.opened_at, h.next_probe_at, h.adaptive,
         (select count(*)::int from (select from posthorn.queue q where q.endpoint_id = e.id limit ${countLimit}) w) as waiting,
         (select q.id from posthorn.queue q where q.endpoint_id = e.id order by q.id limit 1) as oldest_waiting,
         (select count(*)::int from (select from posthorn.dead_letters d where d.endpoint_id = e.id limit ${countLimit}) d) as dead,
         ${countLimit} as count_limit,
         coalesce((select (s.total - s.total_before)::float8 from posthorn.endpoint_skips s where s.endpoint_id = e.id), 0)
           as skipped_while_disabled,
         (select json_agg(json_build_object('createdAt', extract(epoch from s.created_at) * 1000,
                                            'expiresAt', extract(epoch from s.expires_at) * 1000,
                                            'mainFrom', extract(epoch from s.main_from) * 1000,
                                            'signature', s.signature)
                          order by s.expires_at desc nulls first, s.created_at desc, s.id desc)
            from posthorn.endpoint_secrets s
           where s.endpoint_id = e.id and (s.expires_at is null or s.expires_at > now())) as secrets
    from posthorn.endpoints e left join posthorn.endpoint_health h on h.endpoint_id = e.id`;

/** Notifiers are stored as endpoints and have routes of their own. */
const NO_NOTIFIER = "and not e.config ? 'notifier'";

/**
 * Gives changed endpoints the next version: all processes are notified, and read the endpoints with a higher version than
 * theirs. Call it last in the transaction of the change. Until the commit it holds a lock that every change of an endpoint
 * in the deployment needs.
 */
export async function announceChanges(client: Client, ids: readonly Uuid[]): Promise<void> {
  await client.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version),
     changed as (
       update posthorn.endpoints e set version = next.version, updated_at = now() from next where e.id = any ($1::uuid[])
     )
     select pg_notify('${CHANNEL_NAMES.endpoints}', '')`,
    [ids],
  );
}

/** SQL: the shard of an endpoint in a region, by the region's name. Null: the default region. */
const shardInRegion = (name: string, id: string): string =>
  `(select posthorn.shard_in(r.number, ${id}) from posthorn.regions r where r.name = ${name}::text)`;

/** The version of an endpoint whose transaction has not called `announceChanges` yet. */
const NOT_ANNOUNCED = 0;

/** Call `announceChanges` afterwards. */
export async function createEndpoint(
  client: Client,
  endpoint: {
    id: Uuid;
    tenant: string;
    url: string;
    description: string;
    config: EndpointConfig;
    metadata: Record<string, unknown>;
    enabled: boolean;
    paused: boolean;
  },
): Promise<void> {
  await client.query(
    `insert into posthorn.endpoints
            (id, tenant, url, description, config, metadata, enabled, disabled_reason, paused, version, shard, wanted_shard)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, region.shard, region.shard
       from (select ${shardInRegion('$11', '$1::uuid')} as shard) as region`,
    [
      endpoint.id,
      endpoint.tenant,
      endpoint.url,
      endpoint.description,
      endpoint.config,
      endpoint.metadata,
      endpoint.enabled,
      endpoint.enabled ? null : 'manual',
      endpoint.paused,
      NOT_ANNOUNCED,
      endpoint.config.region ?? null,
    ],
  );
}

export async function addSecret(
  client: Client,
  secret: { id: Uuid; endpointId: Uuid; sealed: Sealed },
): Promise<void> {
  await client.query(
    'insert into posthorn.endpoint_secrets (id, endpoint_id, key_id, ciphertext) values ($1, $2, $3, $4)',
    [secret.id, secret.endpointId, secret.sealed.keyId, secret.sealed.ciphertext],
  );
}

/** Locks the endpoint until the transaction ends. Null: it does not exist, or belongs to another tenant. */
export async function lockEndpoint(
  client: Client,
  id: Uuid,
  tenant: string | null,
): Promise<EndpointView | null> {
  const { rows } = await client.query<EndpointView>(
    `${selectEndpoints(COUNT_LIMIT)} where e.id = $1 and ($2::text is null or e.tenant = $2) and e.deleted_at is null ${NO_NOTIFIER} for update of e`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

/** Call `announceChanges` afterwards, unless only its description or metadata have changed: no process caches these. */
export async function updateEndpoint(
  client: Client,
  endpoint: Pick<
    EndpointView,
    'id' | 'url' | 'description' | 'config' | 'metadata' | 'enabled' | 'disabled_reason' | 'paused'
  >,
  switched: 'on' | 'off' | null,
): Promise<void> {
  await client.query(
    `with changed as (
       update posthorn.endpoints
          set url = $2, description = $3, config = $4, metadata = $5, enabled = $6, disabled_reason = $7, paused = $8,
              updated_at = now(), enabled_since = case when $9 then now() else enabled_since end,
              wanted_shard = ${shardInRegion('$10', 'id')},
              placement = placement + (wanted_shard is distinct from ${shardInRegion('$10', 'id')})::int
        where id = $1 returning id
     )
     -- Switched on: it starts with a closed circuit and no failures.
     delete from posthorn.endpoint_health h using changed c where h.endpoint_id = c.id and $9`,
    [
      endpoint.id,
      endpoint.url,
      endpoint.description,
      endpoint.config,
      endpoint.metadata,
      endpoint.enabled,
      endpoint.disabled_reason,
      endpoint.paused,
      switched === 'on',
      endpoint.config.region ?? null,
    ],
  );
  if (endpoint.config.breaker === null) await closeCircuit(client, endpoint.id);
  if (switched === 'on') await noteEndpoint(client, endpoint.id, operationalTypes.endpointEnabled, {});
  if (switched === 'off') await onDisabled(client, endpoint.id, endpoint.disabled_reason);
}

/** Without a breaker the circuit must be closed. `failing_since` stays: an endpoint that keeps failing is disabled. */
async function closeCircuit(client: Client, id: Uuid): Promise<void> {
  const { rows } = await client.query<{ opened_at: Date }>(
    `update posthorn.endpoint_health h
        set circuit = 'closed', consecutive_failures = 0, opened_at = null, cooldown_ms = 0, next_probe_at = null,
            updated_at = now()
       from (select endpoint_id, opened_at from posthorn.endpoint_health
              where endpoint_id = $1 and circuit <> 'closed' for update) as before
      where h.endpoint_id = before.endpoint_id
     returning before.opened_at`,
    [id],
  );
  if (rows.length > 0)
    await noteEndpoint(client, id, operationalTypes.circuitClosed, { opened_at: rows[0]!.opened_at });
}

/**
 * Marks it as deleted. The owner of its shard skips the deliveries that wait; its history stays. Call `announceChanges`
 * afterwards.
 */
export async function deleteEndpoint(client: Client, id: Uuid): Promise<void> {
  await client.query('update posthorn.endpoints set deleted_at = now() where id = $1', [id]);
}

/** The rule that disabled an endpoint, in words, for the audit log. */
export interface DisablingRule {
  readonly reason: DisabledReason;
  readonly rule: string;
}

/**
 * Disables an endpoint because it answered 410 or keeps failing, and records it in the audit log. `seenAs` is the URL and
 * time that the decision is about. Returns false if the endpoint is already disabled, or was moved to another URL or
 * enabled again since then.
 */
export async function disableEndpoint(
  client: Client,
  id: Uuid,
  { reason, rule }: DisablingRule,
  seenAs: { readonly url: string; readonly at: number } | null = null,
): Promise<boolean> {
  const { rows } = await client.query<{ tenant: string }>(
    `select tenant from posthorn.endpoints
      where id = $1 and enabled and deleted_at is null
        and ($2::text is null or (url = $2 and (enabled_since is null or enabled_since < to_timestamp($3))))
        for update`,
    [id, seenAs?.url ?? null, seenAs && seenAs.at / 1000],
  );
  if (rows.length === 0) return false;
  await client.query('update posthorn.endpoints set enabled = false, disabled_reason = $2 where id = $1', [
    id,
    reason,
  ]);
  await onDisabled(client, id, reason);
  await insertOwnAuditEntry(client, {
    action: 'endpoint.disable',
    tenant: rows[0]!.tenant,
    objectId: publicId(idPrefixes.endpoint, id),
    changes: [
      { field: 'enabled', before: true, after: false },
      { field: 'disabled_reason', before: null, after: reason },
      { field: 'rule', after: rule },
    ],
  });
  await announceChanges(client, [id]);
  return true;
}

async function onDisabled(client: Client, id: Uuid, reason: DisabledReason | null): Promise<void> {
  await restartSkippedCount(client, id);
  await noteEndpoint(client, id, operationalTypes.endpointDisabled, { reason });
}

export async function findEndpoint(
  pool: Pool,
  id: Uuid,
  tenant: string | null,
): Promise<EndpointView | null> {
  const { rows } = await pool.query<EndpointView>(
    `${selectEndpoints(COUNT_LIMIT)} where e.id = $1 and ($2::text is null or e.tenant = $2) and e.deleted_at is null ${NO_NOTIFIER}`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

/** The stored endpoint, even if it is deleted. */
export async function findEndpointRecord(pool: Pool, id: Uuid): Promise<EndpointRecord | null> {
  const { rows } = await pool.query<EndpointRecord>(
    `select id, tenant, url, config, enabled, disabled_reason as "disabledReason", paused,
            deleted_at is not null as deleted
       from posthorn.endpoints where id = $1`,
    [id],
  );
  return rows[0] ?? null;
}

/** Which of these endpoints cannot be sent to, and why. */
export async function findUnavailableEndpoints(
  pool: Pool,
  ids: readonly Uuid[],
): Promise<Map<Uuid, 'disabled' | 'deleted'>> {
  const { rows } = await pool.query<{ id: Uuid; why: 'disabled' | 'deleted' }>(
    `select id, case when deleted_at is null then 'disabled' else 'deleted' end as why
       from posthorn.endpoints where id = any ($1::uuid[]) and (deleted_at is not null or not enabled)`,
    [ids],
  );
  return new Map(rows.map(({ id, why }) => [id, why]));
}

/** True even if the endpoint is deleted, because its history stays. */
export async function endpointExisted(pool: Pool, id: Uuid, tenant: string | null): Promise<boolean> {
  const { rows } = await pool.query(
    'select from posthorn.endpoints where id = $1 and ($2::text is null or tenant = $2)',
    [id, tenant],
  );
  return rows.length > 0;
}

/** Endpoints with `api_version`, newest first. */
export async function listPinnedIds(
  pool: Pool,
  page: { tenant: string | null; before: Uuid | null; limit: number },
): Promise<Uuid[]> {
  const { rows } = await pool.query<{ id: Uuid }>(
    `select id from posthorn.endpoints
      where deleted_at is null and config ? 'api_version' and ($1::text is null or tenant = $1)
        and ($2::uuid is null or id < $2)
      order by id desc limit $3`,
    [page.tenant, page.before, page.limit],
  );
  return rows.map(({ id }) => id);
}

export interface EndpointPage {
  readonly tenant: string | null;
  readonly before: Uuid | null;
  readonly limit: number;
  /** Only these. */
  readonly ids?: readonly Uuid[] | null;
  /** Only those with this text in their description or URL, in any case. */
  readonly text?: string | null;
  /** Return only endpoints that subscribe to this event type. */
  readonly eventType?: string | null;
}

export async function listEndpoints(pool: Pool, page: EndpointPage): Promise<EndpointView[]> {
  const share = Math.floor(COUNT_LIMIT_OF_PAGE / page.limit);
  const countLimit = Math.min(COUNT_LIMIT, Math.max(MIN_COUNT_LIMIT, share));
  const values: unknown[] = [page.tenant, page.before, page.limit];
  // Only if given: the planner uses the primary key for the ids.
  const conditions: string[] = [];
  if (page.ids != null) conditions.push(`and e.id = any ($${values.push(page.ids)}::uuid[])`);
  if (page.text != null)
    conditions.push(
      `and position(lower($${values.push(page.text)}::text) in lower(e.description || ' ' || e.url)) > 0`,
    );
  if (page.eventType != null)
    conditions.push(
      `and coalesce(e.config->'events', '["*"]') ?| $${values.push(patternsMatching(page.eventType))}::text[]`,
    );
  const { rows } = await pool.query<EndpointView>(
    `${selectEndpoints(countLimit)} where e.deleted_at is null and ($1::text is null or e.tenant = $1) and ($2::uuid is null or e.id < $2) ${NO_NOTIFIER}
      ${conditions.join(' ')}
      order by e.id desc limit $3`,
    values,
  );
  return rows;
}
