/** The database is taken back to an earlier time under running servers, as an operator's restore of a dump does. */

import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

/** Copies all tables of Posthorn. The result is a function that puts them back, in one commit. */
async function takeBackup(database: TestDatabase): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = 'posthorn'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  const names = rows.map(({ name }) => name);
  await client.query('begin isolation level repeatable read; create schema backup');
  for (const name of names) await client.query(`create table backup.${name} as table posthorn.${name}`);
  await client.query('commit');
  return async () => {
    // As pg_restore does: data as it was, no triggers.
    await client.query('begin; set local session_replication_role = replica');
    await client.query(`truncate ${names.map((name) => `posthorn.${name}`).join(', ')} cascade`);
    for (const name of names) {
      const { rows: columns } = await client.query<{ list: string }>(
        `select string_agg(quote_ident(attname), ', ') as list from pg_attribute
          where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [`posthorn.${name}`],
      );
      const list = columns[0]!.list;
      await client.query(
        `insert into posthorn.${name} (${list}) overriding system value select ${list} from backup.${name}`,
      );
    }
    await client.query('commit');
  };
}

async function serverOn(database: TestDatabase, args: readonly string[] = []): Promise<TestPosthorn> {
  const env = { PORT: String(await freePort()) };
  const posthorn = await startTestPosthorn({ database, args, env });
  onTestFinished(() => posthorn.stop());
  return posthorn;
}

async function newDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

const moveTo = (posthorn: TestPosthorn, id: string, url: string) =>
  expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { url }), 200);

describe('a database that is restored to an earlier time', () => {
  test('never gives endpoints a version that running servers already know', async () => {
    const database = await newDatabase();
    const posthorn = await serverOn(database);
    const [first, second] = [await newReceiver(), await newReceiver()];
    const { id } = await createEndpoint(posthorn, { url: first.url, tenant: 'a' });
    const version = async () =>
      (await database.query<{ version: string }>('select version from posthorn.subscription_version'))[0]!
        .version;
    const restore = await takeBackup(database);
    const known = new Set<string>([await version()]);
    for (let change = 0; change < 20; change += 1) {
      await moveTo(posthorn, id, change % 2 === 0 ? second.url : first.url);
      known.add(await version());
    }
    await restore();
    for (let change = 0; change < 20; change += 1) {
      await moveTo(posthorn, id, second.url);
      expect(known.has(await version())).toBe(false);
    }
  });

  test.each([
    ['one process', []],
    ['a process that accepts and one that delivers', ['--processes', '2']],
  ])('sends where the restored endpoints say: %s', async (_name, args) => {
    const database = await newDatabase();
    const posthorn = await serverOn(database, args);
    const [before, meanwhile, afterwards] = [await newReceiver(), await newReceiver(), await newReceiver()];
    const { id } = await createEndpoint(posthorn, { url: before.url, tenant: 'a' });
    const restore = await takeBackup(database);

    await moveTo(posthorn, id, meanwhile.url);
    const { id: lost } = await createEndpoint(posthorn, { url: meanwhile.url, tenant: 'a' });
    await publish(posthorn, { type: 'order.created', tenant: 'a', data: 1 });
    await meanwhile.waitFor(2);

    await restore();
    const restored = await publish(posthorn, { type: 'order.created', tenant: 'a', data: 2 });
    expect(restored.deliveries).toBe(1);
    await before.waitFor(1);
    await untilDeliveries(posthorn, restored.id, 'delivered');
    expect((await posthorn.api('GET', `/v1/endpoints/${lost}`)).status).toBe(404);

    // As many changes as the servers had seen before the restore.
    await moveTo(posthorn, id, afterwards.url);
    await createEndpoint(posthorn, { url: afterwards.url, tenant: 'a' });
    const changed = await publish(posthorn, { type: 'order.created', tenant: 'a', data: 3 });
    await afterwards.waitFor(2);
    await untilDeliveries(posthorn, changed.id, 'delivered', { count: 2 });
    expect([before.requests.length, meanwhile.requests.length]).toEqual([1, 2]);
    await eventually('the log says what happened', () =>
      posthorn.output().includes('the database was restored to an earlier time'),
    );
  });

  test('sends again what it had delivered since, with the same webhook-id', async () => {
    const database = await newDatabase();
    const posthorn = await serverOn(database);
    const receiver = await newReceiver();
    receiver.answer({ status: 503 });
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'a', retry: { schedule: [0, 0.2, 0.2] } });
    const { id } = await publish(posthorn, { type: 'order.created', tenant: 'a', data: 1 });
    await receiver.waitFor(1);
    const restore = await takeBackup(database);
    receiver.answer({ status: 200 });
    await untilDeliveries(posthorn, id, 'delivered');
    const sent = receiver.requests.length;

    await restore();
    await untilDeliveries(posthorn, id, 'delivered', { timeoutMs: 30_000 });
    expect(receiver.requests.length).toBeGreaterThan(sent);
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([id]));
  });
});
