/** No accepted event is lost, whichever process dies after the 202. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  createEndpoint,
  newReceiver,
  publish,
  startTestPosthorn,
  untilDeliveries,
  waitingIn,
} from '../support/posthorn.ts';

async function newDatabase() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

describe('ACC-1: 202 only after the event and its fan-out are durable', () => {
  test('an event is delivered after kill -9 right after its 202 and a restart', async () => {
    const database = await newDatabase();
    const receiver = await newReceiver();
    receiver.hang();
    const before = await startTestPosthorn({ database });
    await createEndpoint(before, { url: receiver.url, tenant: 'acme' });
    const event = await publish(before, { tenant: 'acme', type: 'a.b', data: 1 });
    await before.kill('SIGKILL');
    const sent = receiver.requests.length;
    receiver.release();
    const after = await startTestPosthorn({ database });
    const requests = await receiver.waitFor(sent + 1);
    expect(new Set(requests.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([event.id]));
    await untilDeliveries(after, event.id, 'delivered');
    expect(receiver.requests.length).toBeLessThanOrEqual(2);
    await after.stop();
  });

  test('a worker that starts later delivers events of an API server that was killed', async () => {
    const database = await newDatabase();
    const receiver = await newReceiver();
    const api = await startTestPosthorn({ database, args: ['--role', 'api'] });
    await createEndpoint(api, { url: receiver.url, tenant: 'acme' });
    const events = await Promise.all(
      Array.from({ length: 20 }, (_, n) => publish(api, { tenant: 'acme', type: 'a.b', data: n })),
    );
    await api.kill('SIGKILL');
    expect(receiver.requests).toHaveLength(0);
    const worker = await startTestPosthorn({ database });
    await receiver.waitFor(20);
    for (const { id } of events) await untilDeliveries(worker, id, 'delivered');
    expect(arrivals(receiver.requests)).toEqual(new Map(events.map(({ id }) => [id, 1])));
    await worker.stop();
  });

  test('commits of events wait for the disk, whatever the default of the database is', async () => {
    const database = await newDatabase();
    await database.query(`do $$ begin
      execute format('alter database %I set synchronous_commit = off', current_database()); end $$`);
    await database.query(`
      create table seen (setting text);
      create function note() returns trigger language plpgsql as $$
        begin insert into seen values (current_setting('synchronous_commit')); return null; end $$;
      create trigger note after insert on posthorn.events for each statement execute function note()`);
    const posthorn = await startTestPosthorn({ database });
    await publish(posthorn, { tenant: 'acme', type: 'a.b', data: 1 });
    await publish(posthorn, { tenant: 'acme', type: 'a.b', data: 1, idempotency_key: 'keyed' });
    expect(await database.query('select setting from seen')).toEqual([{ setting: 'on' }, { setting: 'on' }]);
    await posthorn.stop();
  });

  test('a slow disk does not cost a worker its shards: lease renewals do not wait for the disk', async () => {
    const database = await newDatabase();
    await database.query(`
      create table seen (what text, setting text);
      create function note() returns trigger language plpgsql as $$
        begin insert into seen values (tg_table_name, current_setting('synchronous_commit')); return null; end $$;
      create constraint trigger at_commit after update on posthorn.workers deferrable initially deferred
        for each row execute function note();
      create constraint trigger at_commit after update on posthorn.shards deferrable initially deferred
        for each row execute function note()`);
    const posthorn = await startTestPosthorn({ database });
    expect(await database.query('select distinct what, setting from seen order by what')).toEqual([
      { what: 'shards', setting: 'on' },
      { what: 'workers', setting: 'off' },
    ]);
    await posthorn.stop();
  });
});

test('ACC-5: the payload is the same bytes after a restart between two attempts', async () => {
  const database = await newDatabase();
  const receiver = await newReceiver();
  receiver.answer({ status: 503 });
  const before = await startTestPosthorn({ database });
  const data = '{ "b":1.10, "a":12345678901234567890,"\\u00e9":"\\ud800 \\u0000", "10":[ ] ,"9":1e2}';
  await createEndpoint(before, {
    url: receiver.url,
    tenant: 'acme',
    retry: { schedule: [0, 1], jitter: 'none' },
  });
  const event = await publish(before, `{"tenant":"acme","type":"a.b","data":${data}}`);
  await untilDeliveries(before, event.id, 'retrying');
  await before.kill('SIGKILL');
  receiver.answer({ status: 200 });
  const after = await startTestPosthorn({ database });
  const [first, second] = await receiver.waitFor(2);
  expect(first!.body.toString()).toBe(
    `{"id":"${event.id}","type":"a.b","timestamp":"${event.created_at}","data":${data}}`,
  );
  expect(second!.body).toEqual(first!.body);
  expect(second!.headers).toMatchObject({ 'posthorn-attempt': '2', 'posthorn-retry-reason': 'http_5xx' });
  await untilDeliveries(after, event.id, 'delivered');
  await after.stop();
});

describe('DSP-8: SIGTERM', () => {
  test('finishes requests in flight, loses and repeats nothing, and exits with 0', async () => {
    const database = await newDatabase();
    const receiver = await newReceiver();
    receiver.answer({ delayMs: 100 });
    const before = await startTestPosthorn({ database });
    await createEndpoint(before, { url: receiver.url, tenant: 'acme', max_in_flight: 2 });
    const events = await Promise.all(
      Array.from({ length: 50 }, (_, n) => publish(before, { tenant: 'acme', type: 'a.b', data: n })),
    );
    await receiver.waitFor(5);
    expect(await before.kill('SIGTERM')).toBe(0);
    expect(receiver.requests.length).toBeLessThan(50);
    const after = await startTestPosthorn({ database });
    for (const { id } of events) await untilDeliveries(after, id, 'delivered');
    expect(arrivals(receiver.requests)).toEqual(new Map(events.map(({ id }) => [id, 1])));
    await after.stop();
  });

  test('while events are posted, each is either answered 202 and delivered, or refused', async () => {
    const database = await newDatabase();
    const receiver = await newReceiver();
    const before = await startTestPosthorn({ database });
    await createEndpoint(before, { url: receiver.url, tenant: 'acme' });
    const accepted: string[] = [];
    let stopped = false;
    const posters = Array.from({ length: 8 }, async () => {
      while (!stopped) {
        const answer = await before
          .api('POST', '/v1/events', { tenant: 'acme', type: 'a.b', data: 1 })
          .catch(() => null);
        if (answer === null) return;
        if (answer.status === 202) accepted.push(answer.body.id);
        else expect(answer.status).toBe(503);
      }
    });
    await eventually('some are accepted', () => accepted.length > 100);
    expect(await before.kill('SIGTERM')).toBe(0);
    stopped = true;
    await Promise.all(posters);
    const after = await startTestPosthorn({ database });
    await eventually('nothing waits any more', async () => (await waitingIn(after)) === 0);
    const counts = arrivals(receiver.requests);
    expect(accepted.filter((id) => counts.get(id) !== 1)).toEqual([]);
    await after.stop();
  });
});

test('if one of two processes dies, the other takes over before deadAfterMs, and nothing is lost', async () => {
  const database = await newDatabase();
  const receiver = await newReceiver();
  const env = { POSTHORN_DEAD_AFTER_MS: '30s' };
  const start = () => startTestPosthorn({ database, env });
  const [one, two] = await Promise.all([start(), start()]);
  const tenants = Array.from({ length: 10 }, (_, n) => `tenant-${n}`);
  for (const tenant of tenants) await createEndpoint(one, { url: receiver.url, tenant });
  await two.kill('SIGKILL');
  const killedAt = Date.now();
  const events = await Promise.all(tenants.map((tenant) => publish(one, { tenant, type: 'a.b', data: 1 })));
  await receiver.waitFor(10);
  // It takes well under two seconds; a machine that is busy with other tests may need longer.
  expect(Date.now() - killedAt).toBeLessThan(15_000);
  for (const { id } of events) await untilDeliveries(one, id, 'delivered');
  expect(arrivals(receiver.requests)).toEqual(new Map(events.map(({ id }) => [id, 1])));
  await one.stop();
});
