/** OUT-1: runs every statement of docs/outbox.md, and checks that the role of the page has exactly the described rights. */
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createEndpoint, newReceiver, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
let client: pg.Client;
let markdown: string;
beforeAll(async () => {
  markdown = await readFile(new URL('../../docs/outbox.md', import.meta.url), 'utf8');
  client = new pg.Client({ connectionString: posthorn.database.url });
  await client.connect();
  await client.query('create table public.orders (id int primary key, total numeric)');
  await client.query('set search_path = public');
});
afterAll(async () => {
  // Roles belong to the server, not to the database.
  await client.query('reset role');
  await client.query('drop owned by shop');
  await client.query('drop role shop');
  await client.end();
});

function blocks(language: string): string[] {
  return [...markdown.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
    ([, code]) => code!,
  );
}

test('every statement of the SQL examples runs', async () => {
  const receiver = await newReceiver();
  const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant: 'acme' });
  const statements = blocks('sql')
    .flatMap((block) => block.split(/;\s*$/m))
    .filter((text) => text.trim() !== '');
  expect(statements.length).toBeGreaterThan(12);
  for (const statement of statements) {
    const runnable = statement.replace(/ep_01[0-9a-z]{24}/, endpoint.id);
    await client.query(runnable).catch((error: Error) => expect.fail(`${error.message}:\n${statement}`));
  }
  const requests = await receiver.waitFor(4);
  expect(requests.map(({ body }) => JSON.stringify(JSON.parse(body.toString()).data)).sort()).toEqual([
    '{"order_id":1001,"total":"59.90"}',
    '{"order_id":1001}',
    '{"order_id":1002}',
    '{"order_id":1003}',
  ]);
});

test.each(['python', 'go', 'java', 'ruby', 'php'])(
  'the statements of the example in %s run',
  async (language) => {
    const [code] = blocks(language);
    const statements = [...code!.matchAll(/"((?:insert|select) [^"]+)"/g)].map(([, sql]) => sql!);
    expect(statements).toHaveLength(2);
    const data = `{ "from":"${language}" }`;
    const order = 2000 + language.length * 100 + language.charCodeAt(0);
    const values = [[order, '1.10'], [data]];
    await client.query('begin');
    for (const [index, sql] of statements.entries()) {
      let place = 0;
      const numbered = sql.replace(/%s|\?|\$\d/g, () => {
        place += 1;
        return `$${place}`;
      });
      await client.query(numbered, values[index]);
    }
    await client.query('commit');
    await eventually('it is stored', async () => {
      const found = await posthorn.database.query(
        `select from posthorn.events where data = convert_to($1, 'UTF8')`,
        [data],
      );
      return found.length === 1;
    });
  },
);

test('SEC: the role of the example may only publish', async () => {
  await client.query('set role shop');
  const { rows } = await client.query<{ publish: string }>(`select posthorn.publish('a.b', '1')`);
  expect(rows[0]!.publish).toMatch(/^evt_/);
  const { rows: tables } = await client.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relnamespace = 'posthorn'::regnamespace and c.relkind in ('r', 'p', 'S', 'v')`,
  );
  expect(tables.length).toBeGreaterThan(15);
  for (const { name } of tables)
    await expect(client.query(`select * from posthorn.${name}`), name).rejects.toMatchObject({
      code: '42501',
    });
  await expect(
    client.query(
      `insert into posthorn.outbox (id, tenant, type, data) values (gen_random_uuid(), 'a', 'b', '1')`,
    ),
  ).rejects.toMatchObject({ code: '42501' });
  const { rows: functions } = await client.query<{ name: string }>(
    `select p.proname as name from pg_proc p
      where p.pronamespace = 'posthorn'::regnamespace and has_function_privilege(p.oid, 'execute')`,
  );
  expect(functions).toEqual([{ name: 'publish' }]);
  await client.query('reset role');
});

test('SEC: a role without the grant cannot publish', async () => {
  await client.query('revoke execute on function posthorn.publish from shop');
  await client.query('set role shop');
  await expect(client.query(`select posthorn.publish('a.b', '1')`)).rejects.toMatchObject({ code: '42501' });
  await client.query('reset role');
});
