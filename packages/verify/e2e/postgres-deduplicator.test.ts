/** postgresDeduplicator with a real PostgreSQL, and the examples of the README. */
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts';
import { type PostgresOptions, postgresDeduplicator } from '../src/index.ts';
import { deduplicatorSuite } from '../test/testing/deduplicator-suite.ts';
import {
  createProject,
  forwardRequest,
  type Project,
  readReadmeFiles,
  runServer,
} from '../test/testing/installed.ts';
import { deliver, SECRET, secrets } from '../test/testing/signing.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  pool = new pg.Pool({ connectionString: database.url, max: 25 });
  // Ignore connections that are still closing when the database is dropped.
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

deduplicatorSuite('postgresDeduplicator', create);

it('two deduplicators share their receipts', async () => {
  const key = { subscriber: 'shared', eventId: 'evt_1' };
  await create().once(key, () => 1);
  expect(await create().once(key, () => 2)).toEqual({ status: 'duplicate' });
});

/** A handler that runs until the test ends it. */
function createPendingHandler() {
  const started = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const handler = () => {
    started.resolve();
    return end.promise;
  };
  return { handler, started: started.promise, end };
}

it('a claim of a dead process expires, and the next caller runs the handler', async () => {
  const key = { subscriber: 'dead', eventId: 'evt_1' };
  const receipts = create({ claimSeconds: 0.5 });
  // To others, a handler that never ends looks like a dead process.
  const dead = createPendingHandler();
  void receipts.once(key, dead.handler);
  await dead.started;
  expect(await receipts.once(key, () => 'x')).toEqual({ status: 'in_progress' });
  await expect
    .poll(() => receipts.once(key, () => 'taken over'), { timeout: 3000 })
    .toEqual({ status: 'handled', result: 'taken over' });
});

it('a caller whose claim expired does not release the claim of the next caller', async () => {
  const key = { subscriber: 'late', eventId: 'evt_1' };
  const late = createPendingHandler();
  const lateResult = create({ claimSeconds: 0.001 }).once(key, late.handler);
  await late.started;
  // The claim expires by the clock of the database.
  await pool.query('select pg_sleep(0.02)');
  const now = createPendingHandler();
  const nowResult = create().once(key, now.handler);
  await now.started;
  late.end.reject(new Error('too late'));
  await expect(lateResult).rejects.toThrow('too late');
  expect(await create().once(key, () => 1)).toEqual({ status: 'in_progress' });
  now.end.resolve();
  expect(await nowResult).toMatchObject({ status: 'handled' });
});

it('forget deletes old receipts', async () => {
  const receipts = create({ table: 'public.receipts_2' });
  await receipts.createTable();
  await receipts.once({ subscriber: 'a', eventId: '1' }, () => 1);
  expect(await receipts.forget(60)).toBe(0);
  expect(await receipts.forget(0)).toBe(1);
  expect(await receipts.once({ subscriber: 'a', eventId: '1' }, () => 2)).toMatchObject({
    status: 'handled',
  });
});

it('an invalid table name throws a TypeError', () => {
  for (const table of ['a; drop table b', 'a b', '"a"', ''])
    expect(() => create({ table })).toThrow(TypeError);
});

describe('recordIn', () => {
  it('the receipt commits and rolls back with its transaction, and a duplicate waits for that', async () => {
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

describe('README', () => {
  let project: Project;
  beforeAll(() => {
    project = createProject();
    for (const [file, code] of readReadmeFiles()) project.write(file, code);
  });
  afterAll(() => project.remove());

  it.each(['once.ts', 'transaction.ts'])('%s handles an event once that arrives five times', async (file) => {
    const env = { WEBHOOK_SECRET: SECRET, DATABASE_URL: database.url };
    const delivered = await deliver(secrets(SECRET));
    const server = await runServer(path.join(project.directory, file), env);
    try {
      const first = await Promise.all(
        Array.from({ length: 4 }, () => forwardRequest(`${server.url}/webhooks`, delivered)),
      );
      for (const { status } of first) expect([204, 503]).toContain(status);
      expect((await forwardRequest(`${server.url}/webhooks`, delivered)).status).toBe(204);
      if (file === 'once.ts') expect(server.output().match(/billing order 1/g)).toHaveLength(1);
      else expect(await database.query('select id from orders')).toEqual([{ id: 1 }]);
    } finally {
      await server.stop();
    }
  });
});
