/** A tenant that changes its endpoints all the time does not delay the events or changes of others. */
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, expectStatus, newTenant, publish, usePosthorn } from '../support/posthorn.ts';
import { readScrape } from '../support/scrape.ts';

const posthorn = usePosthorn({ inProcess: true });
const URL_OF_NOBODY = 'http://127.0.0.1:9/';

const rematched = async (): Promise<number> =>
  readScrape((await posthorn.api('GET', '/metrics')).text).value(
    'posthorn_subscription_cache_rematched_total',
  );
const readVersion = async (): Promise<unknown> =>
  (await posthorn.database.query('select version from posthorn.subscription_version'))[0];

test('no batch of another tenant is matched again', async () => {
  const [attacker, tenant] = [newTenant(), newTenant()];
  const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: attacker });
  await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant, paused: true });
  await publish(posthorn, { tenant, type: 'a.b', data: 0 });
  const before = await rematched();
  let isOver = false;
  const attack = async (first: number): Promise<void> => {
    for (let n = first; !isOver; n += 1) {
      const patch = { timeout_ms: 10_000 + (n % 10) };
      await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, patch), 200);
    }
  };
  const attacks = [0, 3, 5, 8].map(attack);
  const events = Array.from({ length: 100 }, (_, n) => n);
  for (const data of events) await publish(posthorn, { tenant, type: 'a.b', data });
  isOver = true;
  await Promise.all(attacks);
  expect(await rematched()).toBe(before);
});

test('a change of description or metadata does not make the processes read endpoints again', async () => {
  const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
  const before = await readVersion();
  const patch = { description: 'new', metadata: { a: 1 } };
  const { body } = await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, patch), 200);
  expect(body).toMatchObject(patch);
  expect(await readVersion()).toEqual(before);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { paused: true }), 200);
  expect(await readVersion()).not.toEqual(before);
});

test('an endpoint that is slow to create does not delay changes of other endpoints', async () => {
  const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
  const somebody = new pg.Client({ connectionString: posthorn.database.url });
  await somebody.connect();
  onTestFinished(() => somebody.end());
  await somebody.query('begin');
  // Creating an endpoint inserts its secret. Changing one does not.
  await somebody.query('lock posthorn.endpoint_secrets in share mode');
  const slow = posthorn.api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, tenant: newTenant() });
  await eventually('it waits', async () => {
    const waiting = await posthorn.database.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return waiting.length > 0;
  });
  await expectStatus(
    posthorn.api('PATCH', `/v1/endpoints/${id}`, { paused: true }, { timeoutMs: 2_000 }),
    200,
  );
  await somebody.query('rollback');
  await expectStatus(slow, 201);
});
