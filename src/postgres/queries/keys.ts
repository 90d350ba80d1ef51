import type { AccessScope, KeyScope } from '../../domain/access-scopes.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';
import { ensureTenant } from './tenants.ts';

export type { KeyScope } from '../../domain/access-scopes.ts';

export interface KeyRecord {
  readonly id: Uuid;
  readonly scope: KeyScope;
  /** Null: everything that `scope` allows. */
  readonly scopes: AccessScope[] | null;
  readonly tenant: string | null;
  readonly description: string;
  readonly prefix: string;
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  /** Null: the default limit of the configuration. */
  readonly rate_per_second: number | null;
  readonly rate_burst: number | null;
  readonly expires_at: Date | null;
  /** Ranges as `address/prefix`. Null: the key works from every address. */
  readonly allowed_ips: string[] | null;
}

const COLUMNS =
  'id, scope, scopes, tenant, description, prefix, created_at, last_used_at, rate_per_second, rate_burst, expires_at, allowed_ips';

export async function findKey(pool: Pool, hash: Buffer): Promise<KeyRecord | null> {
  const { rows } = await pool.query<KeyRecord>({
    name: 'find_key',
    text: `select ${COLUMNS} from posthorn.api_keys where hash = $1 and revoked_at is null`,
    values: [hash],
  });
  return rows[0] ?? null;
}

/** The hashes of valid keys without a checksum that were created since then. */
export async function listUncheckedKeys(
  pool: Pool,
  since: Date,
): Promise<{ hash: Buffer; created_at: Date }[]> {
  const { rows } = await pool.query<{ hash: Buffer; created_at: Date }>({
    name: 'list_unchecked_keys',
    text: `select hash, created_at from posthorn.api_keys
            where not has_checksum and revoked_at is null and created_at >= $1`,
    values: [since],
  });
  return rows;
}

/** The secret of the checksums of API keys. It never changes. */
export async function readChecksumSecret(pool: Pool): Promise<Buffer> {
  const { rows } = await pool.query<{ secret: Buffer }>('select secret from posthorn.key_checksum');
  return rows[0]!.secret;
}

export async function createKey(
  client: Client,
  key: Omit<KeyRecord, 'created_at' | 'last_used_at'> & { readonly hash: Buffer },
): Promise<KeyRecord> {
  if (key.tenant !== null) await ensureTenant(client, key.tenant);
  const { rows } = await client.query<KeyRecord>(
    `insert into posthorn.api_keys 
       (id, scope, tenant, description, prefix, hash, rate_per_second, rate_burst, scopes, expires_at, allowed_ips, has_checksum)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true) returning ${COLUMNS}`,
    [
      key.id,
      key.scope,
      key.tenant,
      key.description,
      key.prefix,
      key.hash,
      key.rate_per_second,
      key.rate_burst,
      key.scopes,
      key.expires_at,
      key.allowed_ips,
    ],
  );
  return rows[0]!;
}

export async function listKeys(
  pool: Pool,
  page: { tenant: string | null; before: Uuid | null; limit: number },
): Promise<KeyRecord[]> {
  const { rows } = await pool.query<KeyRecord>(
    `select ${COLUMNS} from posthorn.api_keys
      where revoked_at is null and not is_portal_session and ($1::text is null or tenant = $1) and ($2::uuid is null or id < $2)
      order by id desc limit $3`,
    [page.tenant, page.before, page.limit],
  );
  return rows;
}

/** Returns null if there is no such key, or it was revoked. `forUpdate` locks it. */
export async function readKey(
  client: Queryable,
  id: Uuid,
  { forUpdate = false }: { readonly forUpdate?: boolean } = {},
): Promise<KeyRecord | null> {
  const { rows } = await client.query<KeyRecord>(
    `select ${COLUMNS} from posthorn.api_keys where id = $1 and revoked_at is null and not is_portal_session ${forUpdate ? 'for update' : ''}`,
    [id],
  );
  return rows[0] ?? null;
}

export type ChangeableKey = Pick<KeyRecord, 'id' | 'description' | 'scopes' | 'expires_at' | 'allowed_ips'>;

/** Notifies all processes, so that the change applies everywhere immediately. */
export async function updateKey(client: Queryable, key: ChangeableKey): Promise<KeyRecord> {
  const { rows } = await client.query<KeyRecord>(
    `with updated as (
       update posthorn.api_keys set description = $2, scopes = $3, expires_at = $4, allowed_ips = $5
        where id = $1 returning ${COLUMNS}
     )
     select updated.*, pg_notify('${CHANNEL_NAMES.keys}', '') from updated`,
    [key.id, key.description, key.scopes, key.expires_at, key.allowed_ips],
  );
  return rows[0]!;
}

/**
 * Returns null if there is no such key. Notifies all processes, so that the key stops working everywhere immediately.
 */
export async function revokeKey(client: Queryable, id: Uuid): Promise<KeyRecord | null> {
  const { rows } = await client.query<KeyRecord>(
    `with revoked as (
       update posthorn.api_keys set revoked_at = now() where id = $1 and revoked_at is null and not is_portal_session returning ${COLUMNS}
     )
     select revoked.*, pg_notify('${CHANNEL_NAMES.keys}', '') from revoked`,
    [id],
  );
  return rows[0] ?? null;
}

export async function touchKeys(pool: Pool, ids: readonly Uuid[]): Promise<void> {
  await pool.query('update posthorn.api_keys set last_used_at = now() where id = any($1::uuid[])', [ids]);
}
