/** A tenant creates and deletes endpoints all the time: processes that do not own them forget them too. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import { createEndpointCache } from '../../src/postgres/endpoint-cache.ts';
import { createSecretBox } from '../../src/postgres/secret-box.ts';
import { createTestDatabase } from '../support/database.ts';

const PATTERNS = Array.from({ length: 500 }, (_, n) => `${'long.'.repeat(10)}pattern-${n}`);
const NEXT_VERSION =
  'with next as (update posthorn.subscription_version set version = version + 1 returning version)';

test('a process forgets deleted endpoints that it does not own, except those with deliveries', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  onTestFinished(() => pool.end());
  const cache = createEndpointCache(pool, createSecretBox(randomBytes(32)), () => {});
  await cache.refresh();
  const [waiting, recent] = [newId(Date.now()), newId(Date.now())];
  await database.query(
    `insert into posthorn.queue (id, endpoint_id, due_at, tenant, event_type)
     values ($1, $2, now() + interval '1 day', 'acme', 'a.b')`,
    [newId(Date.now()), waiting],
  );
  for (let round = 0; round < 5; round += 1) {
    const ids = Array.from({ length: 600 }, () => newId(Date.now()));
    if (round === 0) ids.push(waiting, recent);
    await database.query(
      `${NEXT_VERSION} insert into posthorn.endpoints (id, tenant, url, config, version)
       select id, 'acme', 'https://receiver.test/', $2, version from next, unnest($1::uuid[]) id`,
      [ids, { events: PATTERNS }],
    );
    await cache.refresh();
    await database.query(
      `${NEXT_VERSION} update posthorn.endpoints e
          set deleted_at = now() - case when e.id = $2 then interval '0' else interval '2 minutes' end, version = next.version
         from next where id = any ($1::uuid[])`,
      [ids, recent],
    );
    await cache.refresh();
  }
  const left = [...cache.all()];
  expect(left.length).toBeLessThan(1_300);
  expect(left.map(({ id }) => id)).toEqual(expect.arrayContaining([waiting, recent]));
  // They share one list of patterns: that of an endpoint without patterns of its own.
  expect(new Set(left.map(({ events }) => events)).size).toBe(1);
});
