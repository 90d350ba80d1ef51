import type { Uuid } from '../../domain/ids.ts';
import type { Client, Pool } from '../database.ts';
import type { Sealed } from '../secret-box.ts';
import { addSecret, nextVersion } from './endpoints.ts';

/** How many secrets may sign at once. Each one makes the signature header longer. */
export const MAX_LIVE_SECRETS = 5;

async function bumpVersion(client: Client, endpointId: Uuid): Promise<void> {
  const version = await nextVersion(client);
  await client.query('update posthorn.endpoints set version = $2, updated_at = now() where id = $1', [
    endpointId,
    version,
  ]);
}

/**
 * The new secret signs from now on, and the previous one for another `overlapMs`. Call with the endpoint locked. Returns
 * when the previous secret ends, and how many secrets sign now: the caller rolls back if they are more than
 * `MAX_LIVE_SECRETS`.
 */
export async function rotateSecret(
  client: Client,
  secret: { id: Uuid; endpointId: Uuid; sealed: Sealed },
  overlapMs: number,
): Promise<{ previousExpiresAt: Date | null; liveSecrets: number }> {
  const { rows } = await client.query<{ expires_at: Date }>(
    `update posthorn.endpoint_secrets set expires_at = now() + make_interval(secs => $2::float8 / 1000)
      where endpoint_id = $1 and expires_at is null returning expires_at`,
    [secret.endpointId, overlapMs],
  );
  await addSecret(client, secret);
  await client.query('delete from posthorn.endpoint_secrets where endpoint_id = $1 and expires_at <= now()', [
    secret.endpointId,
  ]);
  const { rows: live } = await client.query<{ count: number }>(
    'select count(*)::int as count from posthorn.endpoint_secrets where endpoint_id = $1',
    [secret.endpointId],
  );
  await bumpVersion(client, secret.endpointId);
  return { previousExpiresAt: rows[0]?.expires_at ?? null, liveSecrets: live[0]!.count };
}

/** Deletes every secret but the current one. Call with the endpoint locked. */
export async function revokePreviousSecrets(client: Client, endpointId: Uuid): Promise<void> {
  const { rowCount } = await client.query(
    'delete from posthorn.endpoint_secrets where endpoint_id = $1 and expires_at is not null',
    [endpointId],
  );
  if (rowCount !== 0) await bumpVersion(client, endpointId);
}

export interface StoredSecret {
  readonly sealed: Sealed;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
}

/** The secrets that sign now, the current one first. */
export async function loadSecrets(pool: Pool, endpointId: Uuid): Promise<StoredSecret[]> {
  const { rows } = await pool.query<{
    key_id: string;
    ciphertext: Buffer;
    created_at: Date;
    expires_at: Date | null;
  }>(
    `select key_id, ciphertext, created_at, expires_at from posthorn.endpoint_secrets
      where endpoint_id = $1 and (expires_at is null or expires_at > now())
      order by expires_at desc nulls first, created_at desc`,
    [endpointId],
  );
  return rows.map((row) => ({
    sealed: { keyId: row.key_id, ciphertext: row.ciphertext },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }));
}
