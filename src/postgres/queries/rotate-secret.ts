import type { SignatureSetting } from '../../domain/endpoint.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Client, Pool } from '../database.ts';
import type { Sealed } from '../secret-box.ts';
import { addSecret } from './endpoints.ts';

/** How many secrets may sign at once. Each one makes the signature header longer. */
export const MAX_LIVE_SECRETS = 5;

/** The current secret comes first: of the secrets without an end, the one that was created last. */
export const NEWEST_SECRET_FIRST = 's.expires_at desc nulls first, s.created_at desc, s.id desc';

export interface SecretRotation {
  /** How long the previous secret still signs. Null: until it is revoked. */
  readonly overlapMs: number | null;
  /** When the new secret starts to sign the main header of a profile with room for one signature. Null: when it is the only secret. */
  readonly mainFrom?: 'now' | Date | null;
  /** The setting that the older secrets keep, because the new one cannot be used with it. */
  readonly keptSignature?: SignatureSetting;
}

/**
 * Adds a secret that signs from now on. The previous one signs for another `overlapMs`. Call with the endpoint locked,
 * and `announceChanges` afterwards. Returns when the previous secret ends, and how many secrets sign now: the caller rolls
 * back if they are more than `MAX_LIVE_SECRETS`.
 */
export async function rotateSecret(
  client: Client,
  secret: { id: Uuid; endpointId: Uuid; sealed: Sealed },
  { overlapMs, mainFrom = null, keptSignature }: SecretRotation,
): Promise<{ previousExpiresAt: Date | null; liveSecrets: number }> {
  const { rows } = await client.query<{ expires_at: Date | null }>(
    `update posthorn.endpoint_secrets set expires_at = now() + make_interval(secs => $2::float8 / 1000)
      where id = (select s.id from posthorn.endpoint_secrets s
                   where s.endpoint_id = $1 and s.expires_at is null order by ${NEWEST_SECRET_FIRST} limit 1)
      returning expires_at`,
    [secret.endpointId, overlapMs],
  );
  if (keptSignature !== undefined)
    await client.query(
      'update posthorn.endpoint_secrets set signature = $2 where endpoint_id = $1 and signature is null',
      [secret.endpointId, JSON.stringify(keptSignature)],
    );
  await addSecret(client, secret);
  if (mainFrom !== null)
    await client.query(
      'update posthorn.endpoint_secrets set main_from = coalesce($2::timestamptz, now()) where id = $1',
      [secret.id, mainFrom === 'now' ? null : mainFrom],
    );
  await client.query('delete from posthorn.endpoint_secrets where endpoint_id = $1 and expires_at <= now()', [
    secret.endpointId,
  ]);
  const { rows: live } = await client.query<{ count: number }>(
    'select count(*)::int as count from posthorn.endpoint_secrets where endpoint_id = $1',
    [secret.endpointId],
  );
  return { previousExpiresAt: rows[0]?.expires_at ?? null, liveSecrets: live[0]!.count };
}

/**
 * Deletes every secret but the current one. Call with the endpoint locked. Returns whether there were others: then call
 * `announceChanges` afterwards.
 */
export async function revokePreviousSecrets(client: Client, endpointId: Uuid): Promise<boolean> {
  const { rowCount } = await client.query(
    `delete from posthorn.endpoint_secrets
      where endpoint_id = $1
        and id <> (select s.id from posthorn.endpoint_secrets s
                    where s.endpoint_id = $1 order by ${NEWEST_SECRET_FIRST} limit 1)`,
    [endpointId],
  );
  return rowCount !== 0;
}

export interface StoredSecret {
  readonly sealed: Sealed;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly mainFrom: Date | null;
  readonly signature: SignatureSetting | null;
}

/** The secrets that sign now, the current one first. */
export async function loadSecrets(pool: Pool, endpointId: Uuid): Promise<StoredSecret[]> {
  const { rows } = await pool.query<{
    key_id: string;
    ciphertext: Buffer;
    created_at: Date;
    expires_at: Date | null;
    main_from: Date | null;
    signature: SignatureSetting | null;
  }>(
    `select s.key_id, s.ciphertext, s.created_at, s.expires_at, s.main_from, s.signature
       from posthorn.endpoint_secrets s
      where s.endpoint_id = $1 and (s.expires_at is null or s.expires_at > now())
      order by ${NEWEST_SECRET_FIRST}`,
    [endpointId],
  );
  return rows.map((row) => ({
    sealed: { keyId: row.key_id, ciphertext: row.ciphertext },
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    mainFrom: row.main_from,
    signature: row.signature,
  }));
}
