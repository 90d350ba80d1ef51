import type { EndpointConfig } from '../../domain/endpoint-config.ts';
import { firstIdAt, timeOfId, type Uuid } from '../../domain/ids.ts';
import type { NotifierConfig } from '../../domain/notices.ts';
import { ADVISORY_LOCKS } from '../advisory-locks.ts';
import type { Client, Queryable } from '../database.ts';
import { deleteEndpoint, type EndpointView } from './endpoints.ts';

/** A notifier as it is stored: an endpoint whose configuration has `notifier`. Its URL is masked; the whole one is sealed. */
export type NotifierView = Pick<
  EndpointView,
  'id' | 'tenant' | 'url' | 'description' | 'enabled' | 'disabled_reason' | 'created_at'
> & { readonly config: EndpointConfig & { readonly notifier: NotifierConfig } };

/** The URL of an endpoint of alias `e`. Of a notifier without its path, which is a credential. */
export const SHOWN_URL = `case when e.config ? 'notifier' then regexp_replace(e.url, '^(https?://[^/]*/).*$', '\\1[redacted]')
       else e.url end`;

const SELECT = `
  select e.id, e.tenant, e.url, e.description, e.config, e.enabled, e.disabled_reason, e.created_at
    from posthorn.endpoints e where e.config ? 'notifier' and e.deleted_at is null`;

/** Null: it does not exist, or belongs to another tenant. */
export async function findNotifier(
  client: Queryable,
  id: Uuid,
  tenant: string | null,
): Promise<NotifierView | null> {
  const { rows } = await client.query<NotifierView>(
    `${SELECT} and e.id = $1 and ($2::text is null or e.tenant = $2)`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

/** Newest first. */
export async function listNotifiers(
  client: Queryable,
  page: { readonly tenant: string | null; readonly before: Uuid | null; readonly limit: number },
): Promise<NotifierView[]> {
  const { rows } = await client.query<NotifierView>(
    `${SELECT} and ($1::text is null or e.tenant = $1) and ($2::uuid is null or e.id < $2) order by e.id desc limit $3`,
    [page.tenant, page.before, page.limit],
  );
  return rows;
}

export async function countNotifiers(client: Queryable, tenant: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from (${SELECT} and e.tenant = $1) as of_tenant`,
    [tenant],
  );
  return rows[0]!.count;
}

/**
 * Deletes a notifier. `url` takes the place of its URL, which is a credential or an e-mail address. Call `announceChanges`
 * afterwards.
 */
export async function deleteNotifier(client: Client, id: Uuid, url: string): Promise<void> {
  await deleteEndpoint(client, id);
  await client.query(
    "update posthorn.endpoints set url = $2, config = config #- '{sealed_settings,url}' where id = $1",
    [id, url],
  );
  await client.query('delete from posthorn.notice_digests where endpoint_id = $1', [id]);
}

/**
 * Marks the address as confirmed. Returns the tenant, or null if this confirmation is not open (any more). Call
 * `announceChanges` afterwards.
 */
export async function confirmNotifier(
  client: Client,
  id: Uuid,
  confirmation: string,
  now: number,
): Promise<string | null> {
  const { rows } = await client.query<{ tenant: string }>(
    `update posthorn.endpoints
        set config = jsonb_set(config #- '{notifier,confirmation}', '{notifier,confirmed_at}', to_jsonb($3::bigint)),
            updated_at = now()
      where id = $1 and deleted_at is null and config #>> '{notifier,confirmation}' = $2
      returning tenant`,
    [id, confirmation, Math.round(now)],
  );
  return rows[0]?.tenant ?? null;
}

const TEST_WINDOW_MS = 60_000;

/**
 * Returns null if one more test message may be sent, or after how many seconds. The limits are for one minute. The audit log
 * has the tests of all nodes. The lock is held until the end of the transaction, so that two concurrent tests do not
 * both take the last place.
 */
export async function secondsToNextTest(
  client: Client,
  { tenant, objectId, now }: { readonly tenant: string; readonly objectId: string; readonly now: number },
  limits: { readonly perNotifier: number; readonly perTenant: number },
): Promise<number | null> {
  await client.query('select pg_advisory_xact_lock(hashtextextended($2, $1))', [
    ADVISORY_LOCKS.notifierTests,
    tenant,
  ]);
  const { rows } = await client.query<{ id: Uuid; object_id: string }>(
    `select id, object_id from posthorn.audit_log
      where tenant = $1 and action = 'notifier.test' and id >= $2 order by id desc limit $3`,
    [tenant, firstIdAt(now - TEST_WINDOW_MS), limits.perTenant],
  );
  // When the limit is reached, the oldest of these tests must leave the window first.
  const blocking = [
    rows[limits.perTenant - 1],
    rows.filter(({ object_id }) => object_id === objectId)[limits.perNotifier - 1],
  ].flatMap((row) => (row === undefined ? [] : timeOfId(row.id)));
  if (blocking.length === 0) return null;
  const seconds = Math.ceil((Math.max(...blocking) + TEST_WINDOW_MS - now) / 1000);
  return Math.min(Math.max(1, seconds), TEST_WINDOW_MS / 1000);
}
