/** The deduplicator on a real PostgreSQL, by itself and as the README uses it. */
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts';
import { type PostgresOptions, postgresDeduplicator } from '../src/index.ts';
import { deduplicatorSuite } from '../test/testing/deduplicator-suite.ts';
import { createProject, forward, type Project, readmeFiles, runServer } from '../test/testing/installed.ts';
import { deliver, SECRET, secrets } from '../test/testing/signing.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  pool = new pg.Pool({ connectionString: database.url, max: 25 });
  // Connections that are still closing when the database is dropped.
  pool.on('error', () => {});
  await create().createTable();
  await create().createTable();
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

const create = (options: Partial<PostgresOptions> = {}) =>
  postgresDeduplicator({ query: (text, values) => pool.query(text, values), ...options });

deduplicatorSuite('in PostgreSQL', create);

it('two processes share it', async () => {
  const key = { subscriber: 'shared', eventId: 'evt_1' };
  await create().once(key, () => 1);
  expect(await create().once(key, () => 2)).toEqual({ status: 'duplicate' });
});

/** A handler that runs until it is told how to end. */
function heldHandler() {
  const started = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const handler = () => {
    started.resolve();
    return end.promise;
  };
  return { handler, started: started.promise, end };
}

it('a claim whose process died lapses, and the next one runs the handler', async () => {
  const key = { subscriber: 'dead', eventId: 'evt_1' };
  const receipts = create({ claimSeconds: 0.5 });
  // A handler that never ends is what a process that died looks like from outside.
  const dead = heldHandler();
  void receipts.once(key, dead.handler);
  await dead.started;
  expect(await receipts.once(key, () => 'x')).toEqual({ status: 'in_progress' });
  await expect
    .poll(() => receipts.once(key, () => 'taken over'), { timeout: 3000 })
    .toEqual({ status: 'handled', result: 'taken over' });
});

it('one that comes back after its claim lapsed takes nothing from the one that has it now', async () => {
  const key = { subscriber: 'late', eventId: 'evt_1' };
  const late = heldHandler();
  const lateResult = create({ claimSeconds: 0.001 }).once(key, late.handler);
  await late.started;
  // Its millisecond goes by on the clock of the database.
  await pool.query('select pg_sleep(0.02)');
  const now = heldHandler();
  const nowResult = create().once(key, now.handler);
  await now.started;
  late.end.reject(new Error('too late'));
  await expect(lateResult).rejects.toThrow('too late');
  expect(await create().once(key, () => 1)).toEqual({ status: 'in_progress' });
  now.end.resolve();
  expect(await nowResult).toMatchObject({ status: 'handled' });
});

it('forgets what is old', async () => {
  const receipts = create({ table: 'public.receipts_2' });
  await receipts.createTable();
  await receipts.once({ subscriber: 'a', eventId: '1' }, () => 1);
  expect(await receipts.forget(60)).toBe(0);
  expect(await receipts.forget(0)).toBe(1);
  expect(await receipts.once({ subscriber: 'a', eventId: '1' }, () => 2)).toMatchObject({
    status: 'handled',
  });
});

it('a table is named by a name', () => {
  for (const table of ['a; drop table b', 'a b', '"a"', ''])
    expect(() => create({ table })).toThrow(TypeError);
});

describe('in a transaction', () => {
  it('the receipt commits and rolls back with what is written beside it; a duplicate waits for that', async () => {
    const receipts = create();
    const key = { subscriber: 'transaction', eventId: 'evt_1' };
    const [a, b] = [await pool.connect(), await pool.connect()];
    const record = (client: pg.PoolClient) =>
      receipts.recordIn((text, values) => client.query(text, values), key);
    try {
      await a.query('begin');
      await b.query('begin');
      expect(await record(a)).toBe(true);
      const waiting = record(b);
      await a.query('rollback');
      expect(await waiting).toBe(true);
      await a.query('begin');
      const again = record(a);
      await b.query('commit');
      expect(await again).toBe(false);
      await a.query('commit');
      expect(await receipts.once(key, () => 1)).toEqual({ status: 'duplicate' });
    } finally {
      a.release();
      b.release();
    }
  });
});

describe('the README', () => {
  let project: Project;
  beforeAll(() => {
    project = createProject();
    for (const [file, code] of readmeFiles()) project.write(file, code);
  });
  afterAll(() => project.remove());

  it.each(['once.ts', 'transaction.ts'])('%s handles what comes five times once', async (file) => {
    const env = { WEBHOOK_SECRET: SECRET, DATABASE_URL: database.url };
    const delivered = await deliver(secrets(SECRET));
    const server = await runServer(path.join(project.directory, file), env);
    try {
      const first = await Promise.all(
        Array.from({ length: 4 }, () => forward(`${server.url}/webhooks`, delivered)),
      );
      for (const { status } of first) expect([204, 503]).toContain(status);
      expect((await forward(`${server.url}/webhooks`, delivered)).status).toBe(204);
      if (file === 'once.ts') expect(server.output().match(/billing order 1/g)).toHaveLength(1);
      else expect(await database.query('select id from orders')).toEqual([{ id: 1 }]);
    } finally {
      await server.stop();
    }
  });
});
