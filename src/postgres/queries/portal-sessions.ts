/** Portal sessions: keys for the people of one tenant, which expire soon. `findKey` finds them like other keys. */
import type { AccessScope } from '../../domain/access-scopes.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';
import { ensureTenant } from './tenants.ts';

export interface PortalSessionRecord {
  readonly id: Uuid;
  readonly tenant: string;
  /** What the session may do. */
  readonly scopes: AccessScope[];
  readonly description: string;
  readonly prefix: string;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly expires_at: Date;
}

const COLUMNS = 'id, tenant, scopes, description, prefix, created_at, last_used_at, expires_at';

/**
 * Also deletes sessions that expired long ago. They are kept for a while, because the deletion of a tenant's data finds the
 * stored answers to their requests by their ids.
 */
export async function createPortalSession(
  client: Client,
  session: Omit<PortalSessionRecord, 'created_at' | 'last_used_at'> & { readonly hash: Buffer },
): Promise<PortalSessionRecord> {
  await ensureTenant(client, session.tenant);
  const { rows } = await client.query<PortalSessionRecord>(
    `with expired as (
       delete from posthorn.api_keys where is_portal_session and expires_at < now() - interval '30 days'
     )
     insert into posthorn.api_keys
       (id, scope, tenant, description, prefix, hash, scopes, expires_at, has_checksum, is_portal_session)
     values ($1, 'tenant', $2, $3, $4, $5, $6, $7, true, true) returning ${COLUMNS}`,
    [
      session.id,
      session.tenant,
      session.description,
      session.prefix,
      session.hash,
      session.scopes,
      session.expires_at,
    ],
  );
  return rows[0]!;
}

/** The sessions that can still be used, newest first. */
export async function listPortalSessions(
  pool: Pool,
  page: { tenant: string | null; before: Uuid | null; limit: number },
): Promise<PortalSessionRecord[]> {
  const { rows } = await pool.query<PortalSessionRecord>(
    `select ${COLUMNS} from posthorn.api_keys
      where is_portal_session and revoked_at is null and expires_at > now()
        and ($1::text is null or tenant = $1) and ($2::uuid is null or id < $2)
      order by id desc limit $3`,
    [page.tenant, page.before, page.limit],
  );
  return rows;
}

/**
 * Ends a session. Returns null if there is none that can still be used. Notifies all processes, so that it ends everywhere
 * immediately.
 */
export async function endPortalSession(client: Queryable, id: Uuid): Promise<PortalSessionRecord | null> {
  const { rows } = await client.query<PortalSessionRecord>(
    `with ended as (
       update posthorn.api_keys set revoked_at = now()
        where id = $1 and is_portal_session and revoked_at is null and expires_at > now() returning ${COLUMNS}
     )
     select ended.*, pg_notify('${CHANNEL_NAMES.keys}', '') from ended`,
    [id],
  );
  return rows[0] ?? null;
}

/** Ends all sessions of a tenant that is being deleted. */
export async function endPortalSessionsOf(client: Queryable, tenant: string): Promise<void> {
  await client.query(
    `with ended as (
       update posthorn.api_keys set revoked_at = now()
        where tenant = $1 and is_portal_session and revoked_at is null returning id
     )
     select pg_notify('${CHANNEL_NAMES.keys}', '') from ended limit 1`,
    [tenant],
  );
}
