/** A source with problems: no logical replication, restarts, a discarded log (OUT-3, OUT-4). */
import { rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/postgres/embedded/index.ts';
import { initStatements } from '../../src/relay/init.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import { newTenant } from '../support/posthorn.ts';
import { runRelay, startRelay } from '../support/relay.ts';

const NAMES = { table: 'posthorn_outbox', publication: 'posthorn_outbox', slot: 'posthorn_shop' };
const ARGS = ['--mode', 'cdc', '--slot', NAMES.slot, '--name', 'shop'];

let directory: string;
let server: EmbeddedPostgres;
let posthorn: TestDatabase;

const startServer = async (settings: Record<string, string>): Promise<void> => {
  server = await startEmbeddedPostgres({ dataDir: path.join(directory, 'data'), settings });
};

/** Uses a new connection each time, because a restart closes older ones. */
async function inShop<T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> {
  const client = new pg.Client({ connectionString: server.connectionString });
  await client.connect();
  try {
    return (await client.query<T>(text, values)).rows;
  } finally {
    await client.end();
  }
}

/** Opens a connection for a longer transaction. It is closed when the test ends. */
async function openClient(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const write = async (tenant: string, n: number): Promise<void> => {
  await inShop("insert into posthorn_outbox (tenant, type, data) values ($1, 'a', to_json($2::int))", [
    tenant,
    n,
  ]);
};

const untilData = (tenant: string, expected: readonly number[]): Promise<unknown> =>
  eventually(
    `${expected} arrived`,
    async () => {
      const rows = await posthorn.query<{ n: number }>(
        "select convert_from(data, 'UTF8')::int as n from posthorn.events where tenant = $1 order by 1",
        [tenant],
      );
      if (rows.length > expected.length)
        throw new Error(`${rows.length} events instead of ${expected.length}`);
      return rows.length === expected.length && rows.every(({ n }, index) => n === expected[index]);
    },
    { timeoutMs: 20_000 },
  );

beforeAll(async () => {
  directory = await temporaryDirectory('posthorn-source-');
  posthorn = await createTestDatabase();
  await startServer({ wal_level: 'replica' });
});

afterAll(async () => {
  await server.stop();
  await posthorn.drop();
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
});

test('OUT-3: a source with a wrong wal_level is refused, with the statement that fixes it', async () => {
  for (const statement of initStatements(NAMES, 'poll')) await inShop(statement);
  const { ended, output } = await runRelay(ARGS, { from: server.connectionString, to: posthorn.url });
  expect({ ended, output }).toEqual({
    ended: 1,
    output: expect.stringMatching(/wal_level of the source is replica[\s\S]*alter system set wal_level/),
  });
});

test('OUT-4: the relay survives a restart of the source, a growing log and an invalidated slot', async () => {
  await server.stop();
  await startServer({ wal_level: 'logical', max_slot_wal_keep_size: '16MB' });
  for (const statement of initStatements(NAMES, 'cdc')) await inShop(statement);
  const tenant = newTenant();
  const options = {
    from: server.connectionString,
    to: posthorn.url,
    args: ARGS,
    env: { POSTHORN_RELAY_MAX_WAL_BYTES: '1MiB' },
  };
  let relay = await startRelay(options);
  await write(tenant, 1);
  await untilData(tenant, [1]);

  await server.stop();
  await startServer({ wal_level: 'logical', max_slot_wal_keep_size: '16MB' });
  await write(tenant, 2);
  await untilData(tenant, [1, 2]);
  await eventually('the relay logs that it was interrupted and continues', () =>
    /interrupted; trying again[\s\S]*the relay continues/.test(relay.output()),
  );

  // A commit that waits for a standby is in the log but not visible in the table. A stop of the relay does not wait for it.
  await inShop("alter system set synchronous_standby_names = 'nobody'");
  await inShop('select pg_reload_conf()');
  const committing = write(tenant, 3);
  await untilData(tenant, [1, 2, 3]);
  expect(await relay.kill('SIGTERM')).toBe(0);
  await inShop('alter system reset synchronous_standby_names');
  await inShop('select pg_reload_conf()');
  await committing;
  relay = await startRelay(options);
  await eventually('the row is gone', async () => (await inShop('select from posthorn_outbox')).length === 0);

  // While a transaction is open, the server keeps the log, whatever the relay confirms.
  const open = await openClient(server.connectionString);
  await open.query('begin');
  await open.query('create table noise (text text)');
  await open.query("insert into noise select repeat('x', 1000) from generate_series(1, 3000)");
  await eventually('it warns', () => relay.output().includes('POSTHORN_RELAY_MAX_WAL_BYTES'));
  const state = await eventually('it reports that', async () => {
    const [row] = await posthorn.query<{ problem: string | null; retained_bytes: string }>(
      "select problem, retained_bytes from posthorn.relay_sources where name = 'shop'",
    );
    return row?.problem?.includes('MiB of log') && row;
  });
  expect(Number(state.retained_bytes)).toBeGreaterThan(2 ** 20);
  await open.query('rollback');

  expect(await relay.kill('SIGTERM')).toBe(0);
  await write(tenant, 4);
  for (let segment = 0; segment < 4; segment += 1) {
    await inShop("select pg_logical_emit_message(true, 'noise', repeat('x', 1000))");
    await inShop('select pg_switch_wal()');
  }
  await inShop('checkpoint');
  expect(await inShop('select wal_status from pg_replication_slots')).toEqual([{ wal_status: 'lost' }]);
  const next = await startRelay(options);
  await write(tenant, 5);
  await untilData(tenant, [1, 2, 3, 4, 5]);
  expect(next.output()).toMatch(/"reason":"invalidated"[^\n]*slot was lost/);
});

test('OUT-4: a relay that must wait keeps its connection, and the source keeps its log', async () => {
  await inShop("alter system set wal_sender_timeout = '1s'");
  await inShop('select pg_reload_conf()');
  const tenant = newTenant();
  const relay = await startRelay({
    from: server.connectionString,
    to: posthorn.url,
    args: ARGS,
    env: { POSTHORN_INGEST_BATCH_ROWS: '10' },
  });
  await write(tenant, 1);
  await untilData(tenant, [1]);
  const holder = await openClient(posthorn.url);
  await holder.query('begin');
  await holder.query('lock table posthorn.events in exclusive mode');
  // One transaction that is larger than the socket buffers, while Posthorn cannot accept events.
  await inShop(
    `insert into posthorn_outbox (tenant, type, data)
     select $1, 'a', (repeat(' ', 200000) || n)::json from generate_series(2, 100) n`,
    [tenant],
  );
  // Only time can show that the server's timeout (1 s) does not end the connection.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  const [state] = await inShop<{ active: boolean }>(
    'select active from pg_replication_slots where slot_name = $1',
    [NAMES.slot],
  );
  expect(state!.active).toBe(true);
  await holder.query('rollback');
  await untilData(
    tenant,
    Array.from({ length: 100 }, (_, index) => index + 1),
  );
  expect(relay.output()).not.toContain('interrupted');
});

test('OUT-3: a slot of the same name that the relay did not create is not changed', async () => {
  await inShop("select pg_create_physical_replication_slot('taken')");
  const { ended, output } = await runRelay(['--mode', 'cdc', '--slot', 'taken'], {
    from: server.connectionString,
    to: posthorn.url,
  });
  expect({ ended, output }).toEqual({ ended: 1, output: expect.stringMatching(/slot "taken"[\s\S]*--slot/) });
  expect(await inShop("select 1 from pg_replication_slots where slot_name = 'taken'")).toHaveLength(1);
});
