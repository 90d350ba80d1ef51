/** A stranger floods the API with invented keys. */
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { hashApiKey } from '../../src/manage/api-keys.ts';
import { expectStatus, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
const read = (key: string) => posthorn.api('GET', '/v1/endpoints', undefined, { key });
const countIndexReads = async (): Promise<number> => {
  const [row] = await posthorn.database.query<{ reads: string }>(
    `select pg_stat_force_next_flush(), sum(idx_scan + seq_scan) as reads from pg_stat_user_tables where relname = 'api_keys'`,
  );
  return Number(row!.reads);
};

it('500 invented keys cause a handful of reads, and keys of this and of earlier versions work meanwhile', async () => {
  const { body } = await expectStatus(posthorn.api('POST', '/v1/keys', { scope: 'admin' }), 201);
  expect(body.key).toMatch(/^phk_[\w-]{51}$/);
  const old = `phk_${randomBytes(32).toString('base64url')}`;
  await posthorn.database.query(
    `insert into posthorn.api_keys (id, scope, description, prefix, hash) values ($1, 'admin', '', $2, $3)`,
    [newId(Date.now()), old.slice(0, 10), hashApiKey(old)],
  );
  const before = await countIndexReads();
  for (let n = 0; n < 50; n += 1) {
    const flood = Array.from({ length: 10 }, (_, i) =>
      read(
        `phk_${randomBytes(i % 2 === 0 ? 32 : 39)
          .toString('base64url')
          .slice(0, 51)}`,
      ),
    );
    for (const { status } of await Promise.all(flood)) expect(status).toBe(401);
    await expectStatus(read(body.key), 200);
    await expectStatus(read(old), 200);
  }
  expect((await countIndexReads()) - before).toBeLessThan(150);
  await expectStatus(posthorn.api('DELETE', `/v1/keys/${body.id}`), 204);
  await expectStatus(read(body.key), 401);
});
