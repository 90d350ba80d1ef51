/**
 * Posthorn behind a real PgBouncer: transaction pooling is refused without POSTHORN_DIRECT_DATABASE_URL and works with
 * it.
 */

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { migrate } from '../../src/postgres/migrate.ts';
import { detectPooling } from '../../src/postgres/pooler.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/needs.ts';
import {
  type Pgbouncer,
  startPgbouncer,
  startPrintedPgbouncer,
  whyNoPgbouncer,
} from '../support/pgbouncer.ts';
import { type PostgresqlServer, startPostgresql } from '../support/postgresql-versions.ts';
import {
  arrivals,
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  untilDeliveries,
} from '../support/posthorn.ts';
import { runPrinted } from '../support/printed-commands.ts';
import { startProcess } from '../support/processes.ts';
import { newShop, startRelay } from '../support/relay.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

describe('a pooler', needs(whyNoPgbouncer), () => {
  let server: PostgresqlServer;
  beforeAll(async () => {
    server = await startPostgresql(18);
  });
  afterAll(() => server?.stop());

  async function newDatabase(): Promise<TestDatabase> {
    const database = await createTestDatabase({ empty: true, serverUrl: server.url });
    onTestFinished(() => database.drop());
    return database;
  }

  async function startPooler(
    mode: 'transaction' | 'session' | 'statement',
    poolSize: number,
  ): Promise<Pgbouncer> {
    const pooler = await startPgbouncer(server, { mode, poolSize });
    onTestFinished(() => pooler.stop());
    return pooler;
  }

  async function run(args: readonly string[], env: Readonly<Record<string, string>>) {
    const child = startProcess([MAIN, ...args], { env: { ...TEST_SETTINGS, ...env } });
    return { code: await child.ended, output: child.output() };
  }

  test.each([
    ['transaction', 1, 'transaction'],
    ['transaction', 3, 'transaction'],
    ['statement', 2, 'transaction'],
    ['session', 5, 'session'],
  ] as const)(
    'pool_mode = %s with %i connections is detected as %s pooling',
    async (mode, poolSize, found) => {
      const pooler = await startPooler(mode, poolSize);
      expect(await detectPooling(pooler.urlOf(server.url))).toBe(found);
      expect(await detectPooling(server.url)).toBe('none');
    },
  );

  test.each([['serve'], ['relay', '--from', 'SOURCE'], ['rotate-encryption-key']])(
    '`posthorn %s` refuses a transaction pooler on DATABASE_URL, and names the setting',
    async (...args) => {
      const pooler = await startPooler('transaction', 1);
      const database = await newDatabase();
      const { code, output } = await run(
        args.map((arg) => (arg === 'SOURCE' ? database.url : arg)),
        { DATABASE_URL: pooler.urlOf(database.url) },
      );
      expect(code).toBe(1);
      expect(output).toContain('DATABASE_URL leads through a pooler that shares connections by transaction');
      expect(output).toContain('Set POSTHORN_DIRECT_DATABASE_URL');
      expect(output).not.toMatch(/\n {4}at /);
    },
  );

  test('`posthorn doctor` reports a transaction pooler, unless POSTHORN_DIRECT_DATABASE_URL is set', async () => {
    const pooler = await startPooler('transaction', 1);
    const database = await newDatabase();
    const env = { DATABASE_URL: pooler.urlOf(database.url) };
    const refused = await run(['doctor'], env);
    expect(refused.code).toBe(1);
    expect(refused.output).toContain('Set POSTHORN_DIRECT_DATABASE_URL');
    const { output } = await run(['doctor'], { ...env, POSTHORN_DIRECT_DATABASE_URL: database.url });
    expect(output).toContain('leases, LISTEN and NOTIFY use POSTHORN_DIRECT_DATABASE_URL');
  });

  test('docs/operate/poolers.md: `posthorn doctor` accepts both addresses, with the printed settings of PgBouncer', async () => {
    const database = await newDatabase();
    const pooler = await startPrintedPgbouncer(database.url);
    onTestFinished(() => pooler.stop());
    const [bothAddresses] = readBlocks('docs/operate/poolers.md').filter(({ language }) => language === 'sh');
    const output = await runPrinted(bothAddresses!.text, {
      env: TEST_SETTINGS,
      replace: {
        'postgres://posthorn@pgbouncer.internal:6432/posthorn': pooler.urlOf(database.url),
        'postgres://posthorn@db.internal:5432/posthorn': database.url,
      },
    });
    expect(output).toContain('leases, LISTEN and NOTIFY use POSTHORN_DIRECT_DATABASE_URL');
  });

  test('a POSTHORN_DIRECT_DATABASE_URL that leads through a pooler or to another database is refused', async () => {
    const pooler = await startPooler('transaction', 1);
    const [database, other] = [await newDatabase(), await newDatabase()];
    const env = { DATABASE_URL: pooler.urlOf(database.url) };
    const pooled = await run(['serve'], { ...env, POSTHORN_DIRECT_DATABASE_URL: env.DATABASE_URL });
    expect(pooled.output).toContain('POSTHORN_DIRECT_DATABASE_URL leads through a pooler');
    const wrong = await run(['serve'], { ...env, POSTHORN_DIRECT_DATABASE_URL: other.url });
    expect(wrong.output).toContain(
      'DATABASE_URL and POSTHORN_DIRECT_DATABASE_URL lead to two different databases',
    );
    expect([pooled.code, wrong.code]).toEqual([1, 1]);
  });

  test('two nodes deliver through a pool of one connection, and all their commits but those of leases are synchronous', async () => {
    const pooler = await startPooler('transaction', 1);
    const database = await newDatabase();
    await watchCommits(database);
    const options = {
      database: { url: pooler.urlOf(database.url) },
      env: {
        POSTHORN_DIRECT_DATABASE_URL: database.url,
        POSTHORN_UPKEEP_MS: '200ms',
        POSTHORN_STATS_FLUSH_MS: '200ms',
      },
    };
    const nodes = await Promise.all([startTestPosthorn(options), startTestPosthorn(options)]);
    try {
      const receiver = await newReceiver();
      const failing = await newReceiver();
      failing.answer({ status: 500 });
      await createEndpoint(nodes[0]!, { url: receiver.url, tenant: 'a' });
      await createEndpoint(nodes[1]!, {
        url: failing.url,
        tenant: 'b',
        retry: { schedule: [0], jitter: 'none' },
        breaker: null,
      });
      const posted = await Promise.all(
        Array.from({ length: 100 }, (_, n) =>
          publish(
            nodes[n % 2]!,
            { type: 'a.posted', tenant: n % 10 === 0 ? 'b' : 'a', data: { n } },
            {
              headers: { 'idempotency-key': `key-${n}` },
            },
          ),
        ),
      );
      // In the transaction of a producer, who chooses the setting.
      await database.query("set synchronous_commit = on; select posthorn.publish('a.published', '{}', 'a')");
      const shop = await newShop('poll', { serverUrl: server.url });
      await startRelay({
        from: shop.url,
        to: options.database.url,
        env: { POSTHORN_DIRECT_DATABASE_URL: database.url },
      });
      await shop.query("insert into posthorn_outbox (tenant, type, data) values ('a', 'a.relayed', '{}')");
      await receiver.waitFor(92);
      for (const [n, { id }] of posted.entries())
        await untilDeliveries(nodes[0]!, id, n % 10 === 0 ? 'dead' : 'delivered');
      expect(Math.max(...arrivals(receiver.requests).values())).toBe(1);
      await eventually('statistics were added up and upkeep ran', async () =>
        (await commits(database)).some(({ name }) => name === 'endpoint_stats'),
      );
      const seen = await commits(database);
      const tables = [...new Set(seen.map(({ name }) => name))];
      expect(tables).toEqual(
        expect.arrayContaining([
          'events',
          'queue',
          'deliveries',
          'attempts',
          'dead_letters',
          'idempotency_keys',
        ]),
      );
      // Renewals of leases use the direct connection and do not wait for the disk: a crash ends leases anyway.
      expect(seen.filter(({ name, setting }) => setting !== 'on' && name !== 'workers')).toEqual([]);
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  test('serve waits for a database that cannot be reached behind the pooler', async () => {
    const database = await newDatabase();
    const cable = await startTcpProxy(server.url);
    onTestFinished(() => cable.cut());
    const port = Number(new URL(cable.url).port);
    const pooler = await startPgbouncer({ ...server, port }, { mode: 'transaction', poolSize: 2 });
    onTestFinished(() => pooler.stop());
    await cable.cut();
    const posthorn = startProcess([MAIN, 'serve'], {
      env: {
        ...TEST_SETTINGS,
        DATABASE_URL: pooler.urlOf(database.url),
        POSTHORN_DIRECT_DATABASE_URL: database.url,
      },
    });
    onTestFinished(async () => {
      await posthorn.kill('SIGKILL');
    });
    const untilPrinted = (text: string) =>
      eventually(`it untilPrinted "${text}"`, () => posthorn.output().includes(text), {
        timeoutMs: 60_000,
        saw: () => posthorn.output().slice(-1500),
      });
    await untilPrinted('waiting for the database');
    await cable.restore();
    await untilPrinted('is running');
  });

  test('the settings of a transaction do not leak to other clients of the pooler', async () => {
    const pooler = await startPooler('transaction', 1);
    const database = await newDatabase();
    const url = pooler.urlOf(database.url);
    const posthorn = await startTestPosthorn({
      database: { url },
      env: { POSTHORN_DIRECT_DATABASE_URL: database.url },
    });
    const stranger = new pg.Client({ connectionString: url });
    await stranger.connect();
    try {
      await publish(posthorn, { type: 'a.b', tenant: 'a', data: {} });
      const { rows } = await stranger.query(
        `select name from pg_settings where source = 'session' and name <> 'application_name'
            and name not in ('client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')`,
      );
      expect(rows).toEqual([]);
    } finally {
      await stranger.end();
      await posthorn.stop();
    }
  });
});

/**
 * Records `synchronous_commit` of every transaction that changes a Posthorn table. Its default is off in this database.
 */
async function watchCommits(database: TestDatabase): Promise<void> {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  await migrate(pool);
  await pool.end();
  await database.query(`
    alter database ${new URL(database.url).pathname.slice(1)} set synchronous_commit = off;
    create table public.commits (name text, setting text);
    create function public.note_commit() returns trigger language plpgsql as $$
    begin
      insert into public.commits values (tg_table_name, current_setting('synchronous_commit'));
      return null;
    end $$;
    do $$
    declare name text;
    begin
      for name in select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where nspname = 'posthorn' and relkind in ('r', 'p') and not relispartition
      loop
        execute format('create trigger note after insert or update or delete on posthorn.%I
                        for each statement execute function public.note_commit()', name);
      end loop;
    end $$`);
}

const commits = (database: TestDatabase) =>
  database.query<{ name: string; setting: string }>('select distinct name, setting from public.commits');
