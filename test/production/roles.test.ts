/**
 * Least privilege: one role owns the schema and migrates, another one serves and owns nothing. Runs the blocks of
 * docs/operate/roles.md; only names, passwords and addresses differ.
 */
import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { firstIdAt, newId } from '../../src/domain/ids.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import {
  createEndpoint,
  MAIN,
  newReceiver,
  publish,
  startTestPosthorn,
  TEST_SETTINGS,
  untilDeliveries,
} from '../support/posthorn.ts';
import { runPrintedUntil } from '../support/printed-commands.ts';
import { startProcess } from '../support/processes.ts';
import { createDay, dropPartitions, keepDays, startOfDay, storeOldEvent } from '../support/retention.ts';

const blocks = readBlocks('docs/operate/roles.md');
const [oneRole, twoRoles, grantsOnTables] = blocks
  .filter(({ language }) => language === 'sql')
  .map(({ text }) => text);
const serveAsTwoRoles = blocks.find(({ language }) => language === 'sh')!.text;

interface Roles {
  readonly database: TestDatabase;
  readonly owner: string;
  readonly server: string;
  urlOf(role: string): string;
  /** Runs SQL of the page with these roles, as a superuser. */
  runSql(text: string): Promise<void>;
}

/** Creates roles with the SQL of the page, before `posthorn migrate`. */
async function newRoles(sql = twoRoles!): Promise<Roles> {
  const database = await createTestDatabase({ empty: true });
  const suffix = randomBytes(4).toString('hex');
  const [owner, server] = [`owner_${suffix}`, `server_${suffix}`];
  const password = randomBytes(12).toString('hex');
  const runSql = async (text: string): Promise<void> => {
    await database.query(
      text
        .replaceAll(/\bposthorn_owner\b|(?<=role |authorization )posthorn\b/g, owner)
        .replaceAll(/\bposthorn_server\b/g, server)
        .replaceAll("'…'", `'${password}'`),
    );
  };
  onTestFinished(async () => {
    for (const { name } of await database.query(
      'select rolname as name from pg_roles where rolname = any($1)',
      [[server, owner]],
    ))
      await database.query(`drop owned by ${name} cascade; drop role ${name}`);
    await database.drop();
  });
  await runSql(sql);
  const urlOf = (role: string): string => {
    const url = new URL(database.url);
    url.username = role;
    url.password = password;
    return url.href;
  };
  return { database, owner, server, urlOf, runSql };
}

async function run(command: string, databaseUrl: string) {
  const child = startProcess([MAIN, command], { env: { ...TEST_SETTINGS, DATABASE_URL: databaseUrl } });
  return { code: await child.ended, output: child.output() };
}

test('if the schema exists, its owner needs no right to create schemas in the database', async () => {
  const { owner, urlOf } = await newRoles(oneRole);
  const { code, output } = await run('migrate', urlOf(owner));
  expect(output).toContain('Applied: 0001');
  expect(code).toBe(0);
});

test('the commands of the page migrate as the owner and serve as the other role', async () => {
  const { owner, server, urlOf } = await newRoles();
  const output = await runPrintedUntil('is running', serveAsTwoRoles, {
    env: TEST_SETTINGS,
    replace: {
      'postgres://posthorn_owner@db.internal/posthorn': urlOf(owner),
      'postgres://posthorn_server@db.internal/posthorn': urlOf(server),
    },
  });
  expect(output).toContain('Applied: 0001');
  expect(output).toContain('the role may use every table, sequence and function');
});

test('a role for servers can be added to a schema that has tables', async () => {
  const withoutDefaults = twoRoles!.replaceAll(/alter default privileges[^;]*;/g, '');
  const { owner, server, urlOf, runSql } = await newRoles(withoutDefaults);
  await run('migrate', urlOf(owner));
  expect((await run('doctor', urlOf(server))).output).toContain('The role lacks ');
  await runSql(grantsOnTables!);
  expect((await run('doctor', urlOf(server))).output).toContain(
    'the role may use every table, sequence and function',
  );
});

test('without the schema and the right to create it, `posthorn migrate` says what to do', async () => {
  const { database, owner, urlOf } = await newRoles();
  await database.query('drop schema posthorn');
  const { code, output } = await run('migrate', urlOf(owner));
  expect(code).toBe(1);
  expect(output).toContain('permission denied for database');
  expect(output).toContain('Create the schema posthorn for the user');
});

test('a role that owns nothing can serve, create partitions and drop old ones', async () => {
  const { database, owner, server, urlOf } = await newRoles();
  expect((await run('migrate', urlOf(owner))).code).toBe(0);
  expect(await database.query('select name from posthorn.partitions')).toEqual([]);
  const posthorn = await startTestPosthorn({ database: { url: urlOf(server) } });
  try {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant: 'a' });
    const event = await publish(posthorn, { type: 'a.b', tenant: 'a', data: {} });
    await untilDeliveries(posthorn, event.id, 'delivered');
    const owners = await database.query(
      `select distinct pg_get_userbyid(relowner) as owner, relispartition from pg_class
        where relnamespace = 'posthorn'::regnamespace and relkind = 'r' and relispartition`,
    );
    expect(owners).toEqual([{ owner, relispartition: true }]);
    const examined = await run('doctor', urlOf(server));
    expect(examined.output).toContain('the role may use every table, sequence and function');
    expect(examined.code, examined.output).toBe(0);
  } finally {
    await posthorn.stop();
  }
  const asServer = async (statement: string) => {
    const pg = await import('pg');
    const client = new pg.default.Client({ connectionString: urlOf(server) });
    await client.connect();
    return client.query(statement).finally(() => client.end());
  };
  await asServer("select posthorn.create_partition('events', '2020-01-01Z', '2020-01-08Z')");
  await asServer("select posthorn.drop_partition('events_20200101')");
  expect(await database.query("select to_regclass('posthorn.events_20200101') as found")).toEqual([
    { found: null },
  ]);
  await createDay(database, startOfDay(50));
  const atMs = startOfDay(50) + 1000;
  const endpointId = newId(atMs);
  await storeOldEvent(database, { status: 'dead', endpointId, atMs });
  await storeOldEvent(database, { status: 'delivered', endpointId, atMs });
  expect(await dropPartitions({ url: urlOf(server) }, { days: keepDays(30) })).toHaveLength(3);
  expect(
    await database.query('select from posthorn.events where id < $1', [firstIdAt(atMs + 1000)]),
  ).toHaveLength(1);
  const [current] = await database.query(
    'select name from posthorn.partitions where now() between from_at and to_at',
  );
  await expect(asServer(`select posthorn.drop_partition('${current!.name}')`)).rejects.toThrow(
    'ended a day ago',
  );
  await expect(asServer("select posthorn.create_partition('tenants', now(), now())")).rejects.toThrow(
    'no partitions',
  );
  await expect(asServer('drop table posthorn.events')).rejects.toThrow('must be owner');
  await expect(asServer('create table posthorn.mine (id int)')).rejects.toThrow(
    'permission denied for schema',
  );
});

test('a role that owns nothing cannot migrate, and the error says which role can', async () => {
  const { database, owner, server, urlOf } = await newRoles();
  await run('migrate', urlOf(owner));
  // The state before an upgrade.
  await database.query('drop function posthorn.create_partition, posthorn.drop_partition');
  await database.query('delete from posthorn.schema_migrations where version >= 20');
  const { code, output } = await run('serve', urlOf(server));
  expect(code).toBe(1);
  expect(output).toContain('Migration 0020_partitions_without_ownership.sql failed: permission denied');
  expect(output).toContain('Run `posthorn migrate` as the role that owns the schema.');
});

test('`posthorn doctor` names missing grants and the connection limit of the role', async () => {
  const { database, owner, server, urlOf } = await newRoles();
  await run('migrate', urlOf(owner));
  await database.query(`revoke update on posthorn.queue from ${server}`);
  await database.query(`revoke all on function posthorn.create_partition from ${server}`);
  await database.query(`alter role ${server} connection limit 5`);
  const { code, output } = await run('doctor', urlOf(server));
  expect(code).toBe(1);
  expect(output).toContain(
    'The role lacks UPDATE on table posthorn.queue, EXECUTE on function posthorn.create_partition.',
  );
  expect(output).toMatch(
    /Connections +up to \d+ for this node \(one process\); the role allows 5, of which 5 are free for Posthorn: not enough for one node\./,
  );
  await database.query(`revoke usage on schema posthorn from ${server}`);
  expect((await run('doctor', urlOf(server))).output).toContain('The role lacks USAGE on schema posthorn');
});
