/**
 * Seals every secret with the current encryption key, in batches. Each batch replaces only the secrets that are still as
 * they were read, so it is safe while servers run, while another rotation runs, and to interrupt and repeat. Servers need
 * no notification: they hold the secrets in memory, which do not change.
 */
import type { SealedValue } from '../../domain/endpoint-config.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import { headerOwner } from '../sealed-headers.ts';
import { settingOwner } from '../sealed-settings.ts';
import { openValue, sealValue } from '../sealed-value.ts';
import type { SecretBox } from '../secret-box.ts';
import { sealOwnerOf } from './idempotent-requests.ts';

/** How many secrets are sealed with a key other than this one, by key. */
export async function countOtherKeys(pool: Pool, keyId: string): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ key_id: string; secrets: number }>(
    `select key_id, count(*)::int as secrets
       from (select key_id from posthorn.endpoint_secrets
             union all
             select key_id from posthorn.idempotent_requests where key_id is not null
             union all
             select v.value ->> 'key_id'
               from posthorn.endpoints e, jsonb_each(e.config -> 'sealed_headers') v
             union all
             select v.value ->> 'key_id'
               from posthorn.endpoints e, jsonb_each(e.config -> 'sealed_settings') v) sealed
      where key_id <> $1 group by key_id order by key_id`,
    [keyId],
  );
  return new Map(rows.map((row) => [row.key_id, row.secrets]));
}

interface SealedRow {
  readonly id: Uuid;
  readonly endpoint_id: Uuid;
  readonly key_id: string;
  readonly ciphertext: Buffer;
}

/** Reseals the next batch of signing secrets after `after`. Null: there are no more. */
export async function resealBatch(
  pool: Pool,
  box: SecretBox,
  after: Uuid | null,
  limit: number,
): Promise<{ last: Uuid; resealed: number } | null> {
  const { rows } = await pool.query<SealedRow>(
    `select id, endpoint_id, key_id, ciphertext from posthorn.endpoint_secrets
      where key_id <> $1 and ($2::uuid is null or id > $2) order by id limit $3`,
    [box.keyId, after, limit],
  );
  const last = rows.at(-1);
  if (last === undefined) return null;
  const fresh = rows.map((row) =>
    box.seal(box.open({ keyId: row.key_id, ciphertext: row.ciphertext }, row.endpoint_id), row.endpoint_id),
  );
  const { rowCount } = await pool.query(
    `update posthorn.endpoint_secrets s set key_id = $1, ciphertext = n.ciphertext
       from unnest($2::uuid[], $3::bytea[], $4::bytea[]) as n (id, was, ciphertext)
      where s.id = n.id and s.ciphertext = n.was`,
    [
      box.keyId,
      rows.map(({ id }) => id),
      rows.map(({ ciphertext }) => ciphertext),
      fresh.map(({ ciphertext }) => ciphertext),
    ],
  );
  return { last: last.id, resealed: rowCount ?? 0 };
}

/** The same for the stored answers of idempotent requests. */
export async function resealAnswersBatch(
  pool: Pool,
  box: SecretBox,
  after: Uuid | null,
  limit: number,
): Promise<{ last: Uuid; resealed: number } | null> {
  const { rows } = await pool.query<{ id: Uuid; key_id: string; answer: Buffer }>(
    `select id, key_id, answer from posthorn.idempotent_requests
      where key_id <> $1 and ($2::uuid is null or id > $2) order by id limit $3`,
    [box.keyId, after, limit],
  );
  const last = rows.at(-1);
  if (last === undefined) return null;
  const fresh = rows.map(({ id, key_id: keyId, answer }) =>
    box.seal(box.open({ keyId, ciphertext: answer }, sealOwnerOf(id)), sealOwnerOf(id)),
  );
  const { rowCount } = await pool.query(
    `update posthorn.idempotent_requests r set key_id = $1, answer = n.answer
       from unnest($2::uuid[], $3::bytea[], $4::bytea[]) as n (id, was, answer)
      where r.id = n.id and r.answer = n.was`,
    [
      box.keyId,
      rows.map(({ id }) => id),
      rows.map(({ answer }) => answer),
      fresh.map(({ ciphertext }) => ciphertext),
    ],
  );
  return { last: last.id, resealed: rowCount ?? 0 };
}

/** The maps of secrets in an endpoint's configuration, and what each secret is bound to. */
const owners = { sealed_headers: headerOwner, sealed_settings: settingOwner };

interface ConfigRow {
  readonly id: Uuid;
  readonly sealed: Record<string, SealedValue>;
}

/** The same for secrets in the configuration of endpoints. */
const resealConfigBatch =
  (field: keyof typeof owners) =>
  async (
    pool: Pool,
    box: SecretBox,
    after: Uuid | null,
    limit: number,
  ): Promise<{ last: Uuid; resealed: number } | null> => {
    const { rows } = await pool.query<ConfigRow>(
      `select id, config -> $4::text as sealed from posthorn.endpoints
        where config ? $4::text and ($2::uuid is null or id > $2)
          and exists (select from jsonb_each(config -> $4::text) v where v.value ->> 'key_id' <> $1)
        order by id limit $3`,
      [box.keyId, after, limit, field],
    );
    const last = rows.at(-1);
    if (last === undefined) return null;
    const fresh = rows.map(({ id, sealed }) =>
      Object.fromEntries(
        Object.entries(sealed).map(([name, value]) => {
          const owner = owners[field](id, name);
          return [name, sealValue(openValue(value, owner, box), owner, box)];
        }),
      ),
    );
    const { rows: changed } = await pool.query<{ secrets: number }>(
      `update posthorn.endpoints e set config = jsonb_set(e.config, array[$4::text], n.sealed)
         from unnest($1::uuid[], $2::jsonb[], $3::jsonb[]) as n (id, was, sealed)
        where e.id = n.id and e.config -> $4::text = n.was
        returning (select count(*)::int from jsonb_object_keys(n.sealed)) as secrets`,
      [
        rows.map(({ id }) => id),
        rows.map(({ sealed }) => JSON.stringify(sealed)),
        fresh.map((sealed) => JSON.stringify(sealed)),
        field,
      ],
    );
    return { last: last.id, resealed: changed.reduce((sum, { secrets }) => sum + secrets, 0) };
  };

export const resealHeadersBatch = resealConfigBatch('sealed_headers');
export const resealSettingsBatch = resealConfigBatch('sealed_settings');
