/** A region that loses its workers: what operators see, and who sends meanwhile. And a scale-in under load. */
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  createEndpoint,
  expectStatus,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
  waitingIn,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { readScrape } from '../support/scrape.ts';

const tenant = 'acme';

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

async function start(database: TestDatabase, args: string[] = [], env = {}): Promise<TestPosthorn> {
  const posthorn = await startTestPosthorn({ database, args, env: { POSTHORN_MEASURE_MS: '200', ...env } });
  onTestFinished(async () => void (await posthorn.kill('SIGKILL')));
  return posthorn;
}

const scrape = async (posthorn: TestPosthorn) =>
  readScrape((await expectStatus(posthorn.api('GET', '/metrics'), 200)).text);

test('SCL-5, SCL-6: a region without workers is reported, its work is measured, and it continues with the next worker', async () => {
  const database = await newDatabase();
  const home = await start(database);
  const eu = await start(database, ['--region', 'eu']);
  const receiver = await newReceiver();
  const work = { role: 'worker', region: 'eu' };
  await createEndpoint(home, { url: receiver.url, tenant, region: 'eu' });
  await eventually('the region has a worker', async () => {
    const now = await scrape(home);
    return now.value('posthorn_region_workers', { region: 'eu' }) === 1;
  });
  expect((await home.api('GET', '/readyz')).body.regions_without_workers).toEqual([]);
  await eu.kill('SIGKILL');

  await eventually('readyz names the region', async () => {
    const { status, body } = await home.api('GET', '/readyz');
    return status === 200 && body.regions_without_workers.includes('eu');
  });
  for (let n = 0; n < 5; n += 1) await publish(home, { tenant, type: 'a', data: n });
  await eventually('the leader reports the work of the region', async () => {
    const now = await scrape(home);
    return (
      now.value('posthorn_region_workers', { region: 'eu' }) === 0 &&
      now.value('posthorn_work_waiting', work) === 5 &&
      now.value('posthorn_work_oldest_age_seconds', work) > 0
    );
  });
  const doctor = startProcess([MAIN, 'doctor'], {
    env: { ...TEST_SETTINGS, DATABASE_URL: database.url },
  });
  await doctor.ended;
  expect(doctor.output()).toContain('No worker runs in eu');
  expect(receiver.requests).toEqual([]);

  await start(database, ['--region', 'eu']);
  await receiver.waitFor(5);
  await eventually('nothing waits', async () => (await waitingIn(home)) === 0);
  expect((await home.api('GET', '/readyz')).body.regions_without_workers).toEqual([]);
});

test('SCL-5: the default region stands in for a region without workers, and gives it back', async () => {
  const database = await newDatabase();
  const home = await start(database, [], { POSTHORN_REGION_FALLBACK_AFTER_MS: '1s' });
  const eu = await start(database, ['--region', 'eu']);
  const receiver = await newReceiver();
  await createEndpoint(home, { url: receiver.url, tenant, region: 'eu' });
  await eu.stop();
  await publish(home, { tenant, type: 'a', data: 1 });
  await receiver.waitFor(1);
  await eventually('the stand-in is measured', async () => {
    const now = await scrape(home);
    return now.value('posthorn_shards_owned', { region: 'stand_in' }) === 256;
  });
  expect((await scrape(home)).value('posthorn_region_workers', { region: 'eu' })).toBe(0);
  const back = await start(database, ['--region', 'eu']);
  await eventually('the region has its shards back', async () => {
    const now = await scrape(back);
    return now.value('posthorn_shards_owned', { region: 'eu' }) === 256;
  });
  expect((await scrape(home)).value('posthorn_shards_owned')).toBe(256);
  await publish(home, { tenant, type: 'a', data: 2 });
  await receiver.waitFor(2);
  await eventually('nothing waits', async () => (await waitingIn(home)) === 0);
  const rows = await database.query<{ worker: string }>('select distinct worker from posthorn.attempts');
  expect(rows).toHaveLength(2);
  expect([...arrivals(receiver.requests).values()]).toEqual([1, 1]);
});

test('SCL-5: FIFO: the new region waits for the deadline of a request that the old one has on the wire', async () => {
  const database = await newDatabase();
  const home = await start(database);
  await start(database, ['--region', 'eu']);
  const receiver = await newReceiver();
  receiver.hang();
  const { id } = await createEndpoint(home, {
    url: receiver.url,
    tenant,
    ordering: 'fifo',
    timeout_ms: 3_000,
    retry: { schedule: [0, 0.1, 0.1, 0.1] },
  });
  const first = await publish(home, { tenant, type: 'a', data: 1 });
  const second = await publish(home, { tenant, type: 'a', data: 2 });
  await receiver.waitFor(1);
  await expectStatus(home.api('PATCH', `/v1/endpoints/${id}`, { region: 'eu' }), 200);
  await eventually('the lane has moved', async () => {
    const rows = await database.query('select from posthorn.endpoints where shard is not null');
    return rows.length === 1;
  });
  await receiver.waitFor(2);
  expect(receiver.requests[1]!.at - receiver.requests[0]!.at).toBeGreaterThan(2_900);
  receiver.release();
  await eventually('nothing waits', async () => (await waitingIn(home)) === 0);
  const ids = receiver.requests.map(({ headers }) => headers['webhook-id']);
  expect([ids[0], ids[1], ids.at(-1)]).toEqual([first.id, first.id, second.id]);
  const senders = await database.query<{ worker: string }>(
    'select worker from posthorn.attempts group by worker order by min(id::text)',
  );
  expect(senders).toHaveLength(2);
});

test('SCL-6: a scale-in hands shards over before it ends: nothing is lost and nothing sent twice', async () => {
  const database = await newDatabase();
  const api = await start(database, ['--role', 'api']);
  const workers = [await start(database), await start(database), await start(database)];
  const receiver = await newReceiver();
  receiver.answer({ status: 200, delayMs: 150 });
  for (let n = 0; n < 12; n += 1)
    await createEndpoint(api, { url: `${receiver.url}/${n}`, tenant: `${tenant}-${n}` });
  const ids: string[] = [];
  let isDone = false;
  const publishing = (async () => {
    for (let n = 0; !isDone; n += 1)
      ids.push((await publish(api, { tenant: `${tenant}-${n % 12}`, type: 'a', data: n })).id);
  })();
  // SIGTERM, as Kubernetes sends it.
  await workers[0]!.stop();
  await workers[1]!.stop();
  isDone = true;
  await publishing;
  const owners = await database.query<{ shards: number; crashes: number }>(
    `select count(*)::int as shards, sum(cardinality(unclean_at))::int as crashes
       from posthorn.shards where owner is not null group by owner`,
  );
  expect(owners).toEqual([{ shards: 256, crashes: 0 }]);
  await eventually('nothing waits', async () => (await waitingIn(api)) === 0);
  expect(arrivals(receiver.requests)).toEqual(new Map(ids.map((id) => [id, 1])));
});
