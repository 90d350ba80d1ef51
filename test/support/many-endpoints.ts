import { randomBytes, randomUUID } from 'node:crypto';
import { createSecretBox } from '../../src/postgres/secret-box.ts';
import type { TestDatabase } from './database.ts';
import { TEST_SETTINGS } from './posthorn.ts';

export interface ManyEndpoints {
  readonly tenant: string;
  readonly url: string;
  readonly count: number;
  readonly config?: object;
  readonly paused?: boolean;
  /** The `events` of each endpoint, by its number from 0. */
  readonly eventsOf?: (n: number) => readonly string[];
  /** True: all have the URL `url`. */
  readonly hasSameUrl?: boolean;
}

/** Creates many endpoints of a tenant with one statement. Each has the URL `url/<number from 0>`. Returns their ids. */
export async function createManyEndpoints(
  database: TestDatabase,
  { tenant, url, count, config = {}, paused = false, eventsOf, hasSameUrl = false }: ManyEndpoints,
): Promise<string[]> {
  const box = createSecretBox(Buffer.from(TEST_SETTINGS.POSTHORN_ENCRYPTION_KEY!, 'base64'));
  const ids = Array.from({ length: count }, () => randomUUID());
  const sealed = ids.map((id) => box.seal(`whsec_${randomBytes(24).toString('base64')}`, id));
  await database.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version),
     made as (
       insert into posthorn.endpoints (id, tenant, url, config, paused, version)
       select id, $2, case when $9 then $3::text else $3 || '/' || n - 1 end,
              $4::jsonb || case when $8::jsonb is null then '{}' else jsonb_build_object('events', $8::jsonb -> (n - 1)::int) end, $5, version
         from next, unnest($1::uuid[]) with ordinality as e(id, n)
     )
     insert into posthorn.endpoint_secrets (id, endpoint_id, key_id, ciphertext)
     select gen_random_uuid(), id, $6, ciphertext from unnest($1::uuid[], $7::bytea[]) as s(id, ciphertext)`,
    [
      ids,
      tenant,
      url,
      config,
      paused,
      box.keyId,
      sealed.map(({ ciphertext }) => ciphertext),
      eventsOf === undefined ? null : JSON.stringify(ids.map((_, n) => eventsOf(n))),
      hasSameUrl,
    ],
  );
  return ids;
}
