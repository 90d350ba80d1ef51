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
}

/** Creates many endpoints of a tenant with one statement. Each has the URL `url/<number from 0>`. Returns their ids. */
export async function createManyEndpoints(
  database: TestDatabase,
  { tenant, url, count, config = {}, paused = false }: ManyEndpoints,
): Promise<string[]> {
  const box = createSecretBox(Buffer.from(TEST_SETTINGS.POSTHORN_ENCRYPTION_KEY!, 'base64'));
  const ids = Array.from({ length: count }, () => randomUUID());
  const sealed = ids.map((id) => box.seal(`whsec_${randomBytes(24).toString('base64')}`, id));
  await database.query(
    `with next as (update posthorn.subscription_version set version = version + 1 returning version),
     made as (
       insert into posthorn.endpoints (id, tenant, url, config, paused, version)
       select id, $2, $3 || '/' || n - 1, $4, $5, version from next, unnest($1::uuid[]) with ordinality as e(id, n)
     )
     insert into posthorn.endpoint_secrets (id, endpoint_id, key_id, ciphertext)
     select gen_random_uuid(), id, $6, ciphertext from unnest($1::uuid[], $7::bytea[]) as s(id, ciphertext)`,
    [ids, tenant, url, config, paused, box.keyId, sealed.map(({ ciphertext }) => ciphertext)],
  );
  return ids;
}
