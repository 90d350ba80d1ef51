import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Migration, migrate, readMigrations, SchemaError } from '../../src/postgres/migrate.ts';
import { markOperatorEndpoints } from '../../src/postgres/queries/mark-operator-endpoints.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, MAIN, startTestPosthorn, TEST_SETTINGS } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { describeSchema } from '../support/schema.ts';

async function emptyDatabase(): Promise<TestDatabase & { pool(settings?: pg.PoolConfig): pg.Pool }> {
  const database = await createTestDatabase({ empty: true });
  const pools: pg.Pool[] = [];
  onTestFinished(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await database.drop();
  });
  return {
    ...database,
    pool(settings = {}) {
      const pool = new pg.Pool({ connectionString: database.url, max: 1, ...settings });
      pool.on('error', () => {});
      pools.push(pool);
      return pool;
    },
  };
}

const appliedIn = async (database: TestDatabase): Promise<string[]> =>
  (
    await database.query<{ name: string }>('select name from posthorn.schema_migrations order by version')
  ).map(({ name }) => name);

const migrationNames = async (): Promise<string[]> => (await readMigrations()).map(({ name }) => name);

/** Runs a command that ends by itself. */
async function run(database: TestDatabase, ...args: string[]) {
  const child = startProcess([MAIN, ...args], { env: { ...TEST_SETTINGS, DATABASE_URL: database.url } });
  return { code: await child.ended, output: child.output() };
}

test('the schema matches the snapshot in the repository', async () => {
  const database = await emptyDatabase();
  await migrate(database.pool());
  const snapshot = await readFile(new URL('../../src/postgres/schema.snapshot.txt', import.meta.url), 'utf8');
  expect(await describeSchema(database.url), 'If this change is meant: npm run schema:snapshot').toBe(
    snapshot,
  );
});

describe('migrations', () => {
  test('are applied once, and a second run applies nothing', async () => {
    const database = await emptyDatabase();
    expect(await migrate(database.pool())).toEqual(await migrationNames());
    expect(await migrate(database.pool())).toEqual([]);
    expect(await appliedIn(database)).toEqual(await migrationNames());
  });

  test('run by four processes at once are each applied once', async () => {
    const database = await emptyDatabase();
    const results = await Promise.all(Array.from({ length: 4 }, () => migrate(database.pool())));
    const names = await migrationNames();
    expect(results.flat().toSorted()).toEqual(names);
    expect(await appliedIn(database)).toEqual(names);
  });

  test('let two Posthorns start at once on an empty database', async () => {
    const database = await emptyDatabase();
    const [one, two] = await Promise.all([startTestPosthorn({ database }), startTestPosthorn({ database })]);
    expect(await appliedIn(database)).toEqual(await migrationNames());
    const { body } = await two.api('POST', '/v1/events', { type: 'a.b', data: 1 });
    expect(body).toMatchObject({ deliveries: 0 });
    await Promise.all([one.stop(), two.stop()]);
  });

  test('may take longer than the query timeout of the connection', async () => {
    const database = await emptyDatabase();
    const slow: Migration = { version: 1, name: '0001_slow.sql', sql: 'select pg_sleep(0.5)', checksum: 'x' };
    const both = [1, 2].map(() => migrate(database.pool({ query_timeout: 300 }), [slow]));
    expect((await Promise.all(both)).flat()).toEqual([slow.name]);
  });

  test('that wait for a lock let other statements on the table go ahead, and are repeated', async () => {
    const database = await emptyDatabase();
    const [first, second]: Migration[] = [
      'create table posthorn.busy (id int)',
      'alter table posthorn.busy add column more int',
    ].map((sql, n) => ({ version: n + 1, name: `000${n + 1}.sql`, sql, checksum: `${n}` }));
    await migrate(database.pool(), [first!]);
    const reader = await database.pool().connect();
    await reader.query('begin; select from posthorn.busy');
    const migrated = migrate(database.pool(), [first!, second!]);
    const waiting = () =>
      database.query("select from pg_locks where not granted and relation = 'posthorn.busy'::regclass");
    await eventually('the migration waits', async () => (await waiting()).length > 0);
    // It queues behind the migration, which gives way.
    const other = database.pool();
    await other.query("set statement_timeout = '5s'");
    try {
      await other.query('select from posthorn.busy');
    } finally {
      await reader.query('commit');
      reader.release();
    }
    expect(await migrated).toEqual([second!.name]);
  });

  test('that fail are rolled back, earlier ones stay, and the next start continues', async () => {
    const database = await emptyDatabase();
    const good = await readMigrations();
    const bad: Migration = {
      version: good.length + 1,
      name: 'bad.sql',
      sql: 'create table posthorn.half (id int); select no_such_function()',
      checksum: 'x',
    };
    const last = good.at(-1)!;
    await expect(migrate(database.pool(), [...good, bad])).rejects.toThrow(
      new SchemaError(
        'Migration bad.sql failed: function no_such_function() does not exist (SQLSTATE 42883, line 1). ' +
          `The schema stays at version ${last.version} (${last.name}).\n` +
          'Nothing of it was applied: remove the cause, then run `posthorn migrate` again.',
      ),
    );
    expect(await database.query("select to_regclass('posthorn.half') as half")).toEqual([{ half: null }]);
    expect(await appliedIn(database)).toEqual(await migrationNames());
    expect(await migrate(database.pool())).toEqual([]);
  });

  test('make the endpoints of the operator tenant that subscribe to operational events `operator: true`', async () => {
    const database = await emptyDatabase();
    const all = await readMigrations();
    const before = all.filter(
      ({ version }) => version < all.find(({ name }) => /operator/.test(name))!.version,
    );
    await migrate(database.pool(), before);
    const insert = `insert into posthorn.endpoints (id, tenant, url, config, version)
                    values (gen_random_uuid(), $1, 'https://example.com/', $2, 1)`;
    await database.query("insert into posthorn.tenants (id) values ('ops'), ('posthorn')");
    for (const [tenant, config] of [
      ['ops', { events: ['a.b', 'posthorn.circuit.*'] }],
      ['ops', { events: ['a.b'] }],
      ['ops', {}],
      ['posthorn', { events: ['posthorn.*'] }],
    ] as const)
      await database.query(insert, [tenant, config]);
    const pool = database.pool();
    await migrate(pool);
    await markOperatorEndpoints(pool, 'ops');
    await database.query(insert, ['ops', { events: ['posthorn.*'] }]);
    await markOperatorEndpoints(pool, 'ops');
    const operators = "select config from posthorn.endpoints where config ? 'operator'";
    expect(await database.query(operators)).toEqual([
      { config: { events: ['a.b', 'posthorn.circuit.*'], operator: true } },
    ]);
  });

  test('LIF-3: delete the samples of payloads that ANALYZE took before, and let it take none of replacements of partitions', async () => {
    const database = await emptyDatabase();
    const all = await readMigrations();
    const pool = database.pool();
    await migrate(
      pool,
      all.filter(({ version }) => version < all.find(({ name }) => /no_samples/.test(name))!.version),
    );
    // Two days that are over, of which one is being replaced.
    await database.query(`
      select posthorn.create_partition('attempts', day, day + interval '1 day')
        from generate_series(date_trunc('day', now()) - interval '6 days', now() - interval '5 days', interval '1 day') as day`);
    await database.query(
      "select posthorn.prepare_partition_swap(min(name), now()) from posthorn.partitions where parent = 'attempts'",
    );
    await database.query("insert into posthorn.tenants (id) values ('acme')");
    await database.query(`
      insert into posthorn.outbox (id, tenant, type, data, idempotency_key, fingerprint)
      select gen_random_uuid(), 'acme', 'a.b', convert_to(to_json('secret ' || n)::text, 'UTF8'), n, sha256(n::text::bytea)
        from generate_series(1, 3) as n`);
    const ids = `gen_random_uuid(), gen_random_uuid()`;
    await database.query(`
      insert into posthorn.debounce_keys (delivery_id, endpoint_id, key, since)
      select ${ids}, 'secret ' || n, now() from generate_series(1, 3) as n`);
    const sampled = () =>
      database.query(`
        select tablename, attname from pg_stats join pg_attribute a using (attname)
         where schemaname = 'posthorn' and a.attrelid = format('posthorn.%I', tablename)::regclass
           and attname in ('data', 'fingerprint', 'key') order by 1, 2`);
    await database.query('analyze');
    expect(await sampled()).toHaveLength(3);
    await migrate(pool);
    await database.query('analyze');
    expect(await sampled()).toEqual([]);
    const replacements = await database.query(`
      select attstattarget from pg_attribute join pg_class c on c.oid = attrelid and c.relkind = 'r'
       where relname like 'attempts_kept%' and attname = 'response_body'`);
    expect(replacements).toEqual([{ attstattarget: 0 }]);
  });

  test('of a newer Posthorn are refused, with name and number', async () => {
    const database = await emptyDatabase();
    const pool = database.pool();
    await migrate(pool);
    const known = (await migrationNames()).length;
    await pool.query("insert into posthorn.schema_migrations values ($1, '9999_future.sql', 'x')", [
      known + 1,
    ]);
    await expect(migrate(pool)).rejects.toThrow(
      new SchemaError(
        `The database has schema version ${known + 1} (9999_future.sql), this Posthorn knows only ${known}. ` +
          'Run the newer Posthorn that made it; going back is not supported.',
      ),
    );
    const started = await run(database, 'serve');
    expect(started.code).not.toBe(0);
    expect(started.output).toContain('Run the newer Posthorn that made it');
    expect(started.output, 'a message, not a stack').not.toMatch(/\n {4}at /);
    expect(started.output).not.toContain(ADMIN_KEY);
  });

  test('a migration that was edited after it had been applied is refused', async () => {
    const database = await emptyDatabase();
    const pool = database.pool();
    const [first] = await readMigrations();
    await migrate(pool);
    await pool.query("update posthorn.schema_migrations set checksum = 'another' where version = 1");
    await expect(migrate(pool)).rejects.toThrow(
      new SchemaError(
        `Migration ${first!.name} differs from the one that was applied to this database. Reinstall Posthorn: its migration files must not be changed.`,
      ),
    );
  });

  test('a migration that was corrected after its release counts as the released one', async () => {
    const database = await emptyDatabase();
    const pool = database.pool();
    await migrate(pool);
    const released = '8f858a68ad5ff89dd9082c1015a6236c128deb9476573575812149cae2a15b43';
    expect(
      await database.query('select checksum from posthorn.schema_migrations where version = 7'),
      'what databases of earlier releases have',
    ).toEqual([{ checksum: released }]);
    expect(await migrate(pool)).toEqual([]);
  });

  test('`posthorn doctor` shows the version of the schema after a failed migration', async () => {
    const database = await emptyDatabase();
    const all = await readMigrations();
    await migrate(database.pool(), all.slice(0, 6));
    // Create a table that the next migration creates too.
    await database.query('create table posthorn.stats_journal ()');
    const migrated = await run(database, 'migrate');
    expect(migrated.code).toBe(1);
    expect(migrated.output).toContain(
      'Migration 0007_statistics.sql failed: relation "stats_journal" already exists (SQLSTATE 42P07). ' +
        'The schema stays at version 6 (0006_key_rate_limits.sql).',
    );
    const examined = await run(database, 'doctor');
    expect(examined.output).toContain(
      `The schema is at version 6 (0006_key_rate_limits.sql); ${all.length - 6} migrations are missing, the next is 0007_statistics.sql.`,
    );
  });

  test('a server older than PostgreSQL 15 is refused and not changed', async () => {
    const database = await emptyDatabase();
    const pool = database.pool();
    // No old server is available, so a current one reports an old version.
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
      client.query = ((...args: unknown[]) =>
        String(args[0]).includes('server_version_num')
          ? Promise.resolve({ rows: [{ number: 140_018, version: '14.18' }] })
          : query(...args)) as typeof client.query;
    });
    await expect(migrate(pool)).rejects.toThrow(
      new SchemaError('PostgreSQL 14.18 is too old: Posthorn needs 15 or later.'),
    );
    expect(await database.query("select to_regnamespace('posthorn') as schema")).toEqual([{ schema: null }]);
  });

  test('change nothing outside their own schema', async () => {
    const database = await emptyDatabase();
    await database.query('create table public.events (id int); create table public.queue (id int)');
    await migrate(database.pool());
    const tables = await database.query(
      `select schemaname || '.' || tablename as name from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema', 'posthorn') order by 1`,
    );
    expect(tables).toEqual([{ name: 'public.events' }, { name: 'public.queue' }]);
  });

  test('`posthorn migrate` applies them and lists them', async () => {
    const database = await emptyDatabase();
    expect(await run(database, 'migrate')).toMatchObject({
      code: 0,
      output: expect.stringContaining(`Applied: ${(await migrationNames()).join(', ')}`),
    });
    expect(await run(database, 'migrate')).toMatchObject({
      code: 0,
      output: expect.stringContaining('The schema is up to date.'),
    });
  });
});
