/** Events of another database: the relay, polling and following the log (OUT-3, OUT-4). */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  arrivals,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  usePosthorn,
} from '../support/posthorn.ts';
import { dropSlot, newShop, runRelay, type Shop, startRelay } from '../support/relay.ts';

const posthorn = usePosthorn({ env: { POSTHORN_MAX_EVENT_BYTES: '4MiB' } });
const BIG_EVENTS = { POSTHORN_MAX_EVENT_BYTES: '4MiB' };
const to = () => posthorn.database.url;

interface Stored {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly idempotency_key: string | null;
  readonly options: Record<string, unknown> | null;
}

/** The stored events of a tenant, in the order of their ids. */
const eventsOf = (tenant: string): Promise<Stored[]> =>
  posthorn.database.query<Stored>(
    `select id, type, convert_from(data, 'UTF8') as data, idempotency_key, options
       from posthorn.events where tenant = $1 order by id`,
    [tenant],
  );

const untilEvents = (tenant: string, count: number): Promise<Stored[]> =>
  eventually(`${count} events of ${tenant}`, async () => {
    const events = await eventsOf(tenant);
    if (events.length > count) throw new Error(`${events.length} events instead of ${count}`);
    return events.length === count && events;
  });

const insertRow = (shop: Shop, tenant: string, data: string, type = 'order.created') =>
  shop.query('insert into posthorn_outbox (tenant, type, data) values ($1, $2, $3)', [tenant, type, data]);

/** A row that is in the table only, as if it were older than the slot. */
async function insertOutsideOfLog(shop: Shop, tenant: string, data: string): Promise<void> {
  await shop.query('alter publication posthorn_outbox drop table posthorn_outbox');
  await insertRow(shop, tenant, data);
  await shop.query('alter publication posthorn_outbox add table posthorn_outbox');
}

const emit = (shop: Shop, event: Record<string, unknown>) =>
  shop.query("select pg_logical_emit_message(true, 'posthorn', $1)", [JSON.stringify(event)]);

/** Runs `work` in a transaction and rolls it back. */
async function rolledBack(shop: Shop, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: shop.url });
  await client.connect();
  await client.query('begin');
  await work(client);
  await client.query('rollback');
  await client.end();
}

const rowsLeft = async (shop: Shop): Promise<number> =>
  Number((await shop.query<{ count: string }>('select count(*) from posthorn_outbox'))[0]!.count);

const sourceState = async (name: string) =>
  (await posthorn.database.query('select * from posthorn.relay_sources where name = $1', [name]))[0];

describe.each(['poll', 'cdc'] as const)('%s', (mode) => {
  const start = (shop: Shop, more: readonly string[] = []) =>
    startRelay({
      from: shop.url,
      to: to(),
      args: ['--mode', mode, '--slot', shop.slot, '--name', shop.slot, ...more],
      env: BIG_EVENTS,
    });

  test('OUT-3: committed events arrive byte for byte and in order, rolled-back ones never, and rows are deleted', async () => {
    const shop = await newShop(mode);
    const tenant = newTenant();
    const receiver = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo' });
    const relay = await start(shop);
    await rolledBack(shop, (client) =>
      client.query("insert into posthorn_outbox (tenant, type, data) values ($1, 'order.lost', '1')", [
        tenant,
      ]),
    );
    await shop.query(
      `insert into posthorn_outbox (tenant, type, data, idempotency_key, endpoint_ids, headers, schema_version, deliver_at)
       values ($1, 'order.created', '{"n" : 1.00,\n "ü":"\\u00e9"}', 'key-1', array[$2], '{"x-order": "7"}', 'v2',
               '2020-02-03 04:05:06.789+01')`,
      [tenant, endpoint.id],
    );
    await shop.query(
      "insert into posthorn_outbox (tenant, type, data) select $1, 'order.created', to_json(n) from generate_series(2, 300) n",
      [tenant],
    );
    const requests = await receiver.waitFor(300, 20_000);
    expect(requests.map((request) => request.json().data)).toEqual([
      { n: 1, ü: 'é' },
      ...Array.from({ length: 299 }, (_, index) => index + 2),
    ]);
    expect(requests[0]!.headers['x-order']).toBe('7');
    const [first] = (await eventsOf(tenant)).filter((event) => event.idempotency_key === 'key-1');
    expect(first).toMatchObject({
      type: 'order.created',
      data: '{"n" : 1.00,\n "ü":"\\u00e9"}',
      options: { schema_version: 'v2', deliver_at: Date.parse('2020-02-03T03:05:06.789Z') },
    });
    await eventually('the table is empty', async () => (await rowsLeft(shop)) === 0);
    expect(await eventsOf(tenant)).toHaveLength(300);
    expect(await relay.kill('SIGTERM')).toBe(0);
    await insertRow(shop, tenant, '"while it was stopped"');
    await start(shop);
    await untilEvents(tenant, 301);
  });

  test('VER-1: events that do not match their schema are never refused, but flagged, delivered and listed', async () => {
    const shop = await newShop(mode);
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo' });
    const schema = { type: 'object', required: ['id'], properties: { id: { type: 'string' } } };
    const types = {
      strict: `${mode}.strict`,
      warn: `${mode}.warn`,
      off: `${mode}.off`,
      unknown: `${mode}.unknown`,
    };
    for (const validation of ['strict', 'warn', 'off'] as const) {
      const path = `/v1/event-types/${types[validation]}`;
      await expectStatus(posthorn.api('PUT', `${path}/versions/v1`, { schema }), 201);
      await expectStatus(posthorn.api('PUT', path, { validation }), 200);
    }
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { validation: 'strict' }), 200);
    // What the API refuses.
    const refused = await expectStatus(
      posthorn.api('POST', '/v1/events', { tenant, type: types.strict, data: {} }),
      422,
    );
    expect(refused.body.code).toBe('payload_invalid');

    await start(shop);
    await insertRow(shop, tenant, '{}', types.strict);
    await insertRow(shop, tenant, '{"id":"1"}', types.strict);
    await insertRow(shop, tenant, '{}', types.warn);
    await insertRow(shop, tenant, '{}', types.off);
    await insertRow(shop, tenant, '{}', types.unknown);
    await shop.query(
      "insert into posthorn_outbox (tenant, type, data, schema_version) values ($1, $2, '{}', 'v9')",
      [tenant, types.strict],
    );
    await receiver.waitFor(6);
    const missing = [{ path: 'data.id', message: 'is required' }];
    const found = (await untilEvents(tenant, 6)).map(({ type, data, options }) => [
      type,
      data,
      (options?.schema_errors as { path: string }[] | undefined) ?? null,
    ]);
    expect(found).toHaveLength(6);
    expect(found).toEqual(
      expect.arrayContaining([
        [types.strict, '{}', missing],
        [types.strict, '{"id":"1"}', null],
        [types.warn, '{}', missing],
        [types.off, '{}', null],
        [types.unknown, '{}', [{ path: 'type', message: 'is not in the catalogue' }]],
        [types.strict, '{}', [expect.objectContaining({ path: 'schema_version' })]],
      ]),
    );
    await eventually('the failures are listed', async () => {
      const { body } = await posthorn.api('GET', `/v1/event-types/${types.strict}/failures?tenant=${tenant}`);
      return body.data.filter(({ result }: { result: string }) => result === 'flagged').length === 2;
    });
    expect(Number((await sourceState(shop.slot))?.rejected)).toBe(0);
    await eventually('the table is empty', async () => (await rowsLeft(shop)) === 0);
  });

  test('OUT-3: an invalid row is marked and recorded, and blocks no other row', async () => {
    const shop = await newShop(mode);
    const tenant = newTenant();
    await posthorn.database.query(
      `create or replace function refuse() returns trigger language plpgsql as $$ begin raise 'not today'; end $$`,
    );
    await posthorn.database.query(
      `create trigger no_poison before insert on posthorn.events for each row
       when (new.type = 'poison') execute function refuse()`,
    );
    onTestFinished(async () => {
      await posthorn.database.query('drop trigger no_poison on posthorn.events');
    });
    const relay = await start(shop);
    await insertRow(shop, tenant, '1', 'poison');
    await insertRow(shop, tenant, '1', 'not a type!');
    await insertRow(shop, tenant, `"${'x'.repeat(4 * 2 ** 20)}"`);
    await shop.query(
      "insert into posthorn_outbox (tenant, type, data, deliver_at) values ($1, 'a', '1', 'infinity')",
      [tenant],
    );
    await insertRow(shop, tenant, '"fine"');
    await untilEvents(tenant, 1);
    const marked = await eventually('four rows are marked', async () => {
      const rows = await shop.query<{ problem: string }>('select problem from posthorn_outbox order by seq');
      return rows.length === 4 && rows.every(({ problem }) => problem !== null) && rows;
    });
    expect(marked.map(({ problem }) => problem)).toEqual([
      expect.stringContaining('not today'),
      expect.stringContaining('type'),
      expect.stringContaining('bytes'),
      expect.stringContaining('deliver_at'),
    ]);
    const recorded = await posthorn.database.query(
      'select problem from posthorn.relay_rejected where source = $1',
      [shop.slot],
    );
    expect(recorded).toHaveLength(4);
    await eventually('it is counted', async () => {
      const { accepted, rejected } = (await sourceState(shop.slot)) ?? {};
      return accepted === '1' && rejected === '4';
    });
    expect(relay.output()).toContain('rejected an event');
  });

  test('OUT-4: a relay that is killed repeatedly while others write loses and repeats nothing', async () => {
    const shop = await newShop(mode);
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const committed = new Set<string>();
    let writing = true;
    const writers = [0, 1].map(async () => {
      while (writing) {
        const order = randomUUID();
        const rollsBack = Math.random() < 0.2;
        const asMessage = mode === 'cdc' && Math.random() < 0.5;
        const write = async (client: pg.Client) => {
          if (asMessage) {
            const event = JSON.stringify({ tenant, type: 'order.created', data: order });
            await client.query("select pg_logical_emit_message(true, 'posthorn', $1)", [event]);
          } else {
            await client.query(
              "insert into posthorn_outbox (tenant, type, data) values ($1, 'order.created', $2)",
              [tenant, JSON.stringify(order)],
            );
          }
        };
        const client = new pg.Client({ connectionString: shop.url });
        await client.connect();
        await client.query('begin');
        await write(client);
        await client.query(rollsBack ? 'rollback' : 'commit');
        await client.end();
        if (!rollsBack) committed.add(order);
      }
    });
    for (let round = 0; round < 3; round += 1) {
      const relay = await start(shop);
      const before = (await eventsOf(tenant)).length;
      await eventually('it brings something', async () => (await eventsOf(tenant)).length > before);
      // Wait for a random time, so that the kill happens at a random moment.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150));
      await relay.kill('SIGKILL');
    }
    writing = false;
    await Promise.all(writers);
    const last = await start(shop);
    let found: Stored[] = [];
    const events = await eventually(
      'all of it is there',
      async () => {
        found = await eventsOf(tenant);
        return found.length >= committed.size && (await rowsLeft(shop)) === 0 && found;
      },
      {
        timeoutMs: 20_000,
        saw: () => ({ committed: committed.size, found: found.length, log: last.output() }),
      },
    );
    expect(events.map(({ data }) => JSON.parse(data)).toSorted()).toEqual([...committed].toSorted());
    await eventually('each is delivered', () => arrivals(receiver.requests).size === committed.size);
    expect([...arrivals(receiver.requests).values()].every((times) => times === 1)).toBe(true);
  });

  test('OUT-3: large events arrive, and idempotency keys apply as in the API', async () => {
    const shop = await newShop(mode);
    const tenant = newTenant();
    await start(shop);
    const big = JSON.stringify('ä'.repeat(1_500_000));
    await insertRow(shop, tenant, big);
    for (const n of [1, 2]) {
      await shop.query(
        "insert into posthorn_outbox (tenant, type, data, idempotency_key) values ($1, 'a', '7', 'same')",
        [tenant],
      );
      await eventually(`row ${n} is gone`, async () => (await rowsLeft(shop)) === 0);
    }
    const events = await eventsOf(tenant);
    expect(events.some(({ data }) => data === big)).toBe(true);
    const keyed = events.filter(({ data }) => data === '7');
    expect(keyed.filter(({ options }) => options?.duplicate_of === undefined)).toHaveLength(1);
  });
});

describe('polling', () => {
  test('OUT-3: several relays share the table, and --keep keeps rows with their event ids', async () => {
    const shop = await newShop('poll');
    const tenant = newTenant();
    const args = ['--keep', '--name', shop.slot];
    const env = { POSTHORN_INGEST_BATCH_ROWS: '20' };
    await shop.query(
      "insert into posthorn_outbox (tenant, type, data) select $1, 'order.created', to_json(n) from generate_series(1, 1000) n",
      [tenant],
    );
    const relays = await Promise.all([1, 2].map(() => startRelay({ from: shop.url, to: to(), args, env })));
    const events = await untilEvents(tenant, 1000);
    expect(new Set(events.map(({ data }) => data)).size).toBe(1000);
    await eventually('all are marked', async () => {
      const left = await shop.query('select 1 from posthorn_outbox where published_at is null limit 1');
      return left.length === 0;
    });
    const [row] = await shop.query<{ event_id: string }>('select event_id from posthorn_outbox limit 1');
    expect((await posthorn.api('GET', `/v1/events/${row!.event_id}`)).status).toBe(200);
    for (const relay of relays) expect(await relay.kill('SIGTERM')).toBe(0);
  });

  test('OUT-4: the lag is the age of the oldest waiting row', async () => {
    const shop = await newShop('poll');
    const tenant = newTenant();
    await insertRow(shop, tenant, '1');
    await shop.query("update posthorn_outbox set created_at = now() - interval '50 seconds'");
    const holder = new pg.Client({ connectionString: shop.url });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query('begin');
    await holder.query('select from posthorn_outbox for update');
    await startRelay({ from: shop.url, to: to(), args: ['--name', shop.slot] });
    await eventually('the lag shows', async () => (await sourceState(shop.slot))?.lag_seconds > 45);
    const { relays } = (await posthorn.api('GET', '/readyz')).body;
    expect(relays.oldest_age_seconds).toBeGreaterThan(45);
    await holder.query('rollback');
    await untilEvents(tenant, 1);
    await eventually('the lag is gone', async () => (await sourceState(shop.slot))?.lag_seconds === 0);
  });
});

describe('change data capture', () => {
  const start = (shop: Shop) =>
    startRelay({
      from: shop.url,
      to: to(),
      args: ['--mode', 'cdc', '--slot', shop.slot, '--name', shop.slot],
    });

  test('OUT-3: messages without a table, in the order of commits, mixed with rows and other tables', async () => {
    const shop = await newShop('cdc');
    const tenant = newTenant();
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo' });
    await shop.query('create table orders (n int)');
    await shop.query('alter publication posthorn_outbox add table orders');
    await start(shop);
    await rolledBack(shop, (client) =>
      client.query(`select pg_logical_emit_message(true, 'posthorn', '{"type":"a","data":"lost"}')`),
    );
    await emit(shop, { tenant, type: 'a', data: 1 });
    await shop.query('insert into orders values (1)');
    await insertRow(shop, tenant, '2');
    const id = '019a8000-0000-7abc-8000-123456789abc';
    for (const _ of [1, 2]) await emit(shop, { tenant, type: 'a', data: 3, id });
    await shop.query("select pg_logical_emit_message(true, 'another', 'not for us')");
    await shop.query("select pg_logical_emit_message(false, 'posthorn', '{}')");
    await shop.query("select pg_logical_emit_message(true, 'posthorn', 'not json')");
    // The message of the problem contains a field name that PostgreSQL cannot store as text.
    await emit(shop, { tenant, type: 'a', data: 4, 'nul\0': 1 });
    await emit(shop, { tenant, type: 'a', data: 4 });
    const requests = await receiver.waitFor(4);
    expect(requests.map((request) => request.json().data)).toEqual([1, 2, 3, 4]);
    const rejected = await eventually('three are recorded', async () => {
      const rows = await posthorn.database.query<{ problem: string; body: Buffer }>(
        'select problem, body from posthorn.relay_rejected where source = $1 order by problem',
        [shop.slot],
      );
      return rows.length === 3 && rows;
    });
    expect(rejected.map(({ problem }) => problem).toSorted()).toEqual([
      expect.stringMatching(/not valid JSON/),
      expect.stringMatching(/Unknown field: nul\ufffd/),
      expect.stringMatching(/must be true/),
    ]);
    expect(rejected.map(({ body }) => body.toString())).toContain('not json');
    expect(await eventsOf(tenant)).toHaveLength(4);
  });

  test('OUT-3: one relay follows the log, and another stands by and takes over', async () => {
    const shop = await newShop('cdc');
    const tenant = newTenant();
    const first = await start(shop);
    await emit(shop, { tenant, type: 'a', data: 1 });
    await untilEvents(tenant, 1);
    const second = await start(shop);
    await eventually('the second stands by', () => second.output().includes('standing by'));
    await first.kill('SIGKILL');
    await emit(shop, { tenant, type: 'a', data: 2 });
    await untilEvents(tenant, 2);
    await eventually('the second follows', () => second.output().includes('following the log'));
  });

  test('OUT-4: the slot advances with writes to other tables, and its retained log is measured', async () => {
    const shop = await newShop('cdc');
    await start(shop);
    await shop.query('create table noise (n int)');
    const confirmed = async () =>
      (
        await shop.query<{ lsn: string }>(
          "select (confirmed_flush_lsn - '0/0')::text as lsn from pg_replication_slots where slot_name = $1",
          [shop.slot],
        )
      )[0]!.lsn;
    const before = Number(await confirmed());
    await shop.query('insert into noise select generate_series(1, 1000)');
    await eventually('it is confirmed', async () => Number(await confirmed()) > before);
    await eventually('it is reported', async () => (await sourceState(shop.slot))?.retained_bytes !== null);
  });

  test('OUT-4: a standby relay reads the table if the previous relay died before it had read it', async () => {
    const shop = await newShop('cdc');
    const tenant = newTenant();
    const first = await start(shop);
    const second = await start(shop);
    await eventually('the second stands by', () => second.output().includes('standing by'));
    // The state after a relay has created its slot again and was killed.
    await insertOutsideOfLog(shop, tenant, '1');
    await posthorn.database.query('update posthorn.relay_sources set needs_table = true where name = $1', [
      shop.slot,
    ]);
    await first.kill('SIGKILL');
    await untilEvents(tenant, 1);
    await eventually('the row is gone', async () => (await rowsLeft(shop)) === 0);
  });

  test('OUT-4: the relay waits for a locked row that is older than the slot', async () => {
    const shop = await newShop('cdc');
    const tenant = newTenant();
    await insertOutsideOfLog(shop, tenant, '1');
    const somebody = new pg.Client({ connectionString: shop.url });
    await somebody.connect();
    await somebody.query('begin');
    await somebody.query('select from posthorn_outbox for update');
    const relay = await start(shop);
    await eventually('the relay has looked', () => /following the log|are locked/.test(relay.output()));
    await somebody.query('rollback');
    await somebody.end();
    await untilEvents(tenant, 1);
  });

  test('OUT-4: a lost slot is reported and recreated, and events that the log lost are read from the table', async () => {
    const shop = await newShop('cdc');
    const tenant = newTenant();
    const first = await start(shop);
    await insertRow(shop, tenant, '1');
    await untilEvents(tenant, 1);
    await eventually('a position is reported', async () => (await sourceState(shop.slot))?.confirmed_lsn);
    await first.kill('SIGTERM');
    await insertRow(shop, tenant, '2');
    await emit(shop, { tenant, type: 'a', data: 'gone' });
    await dropSlot(shop, shop.slot);
    const second = await start(shop);
    await insertRow(shop, tenant, '3');
    const events = await untilEvents(tenant, 3);
    expect(events.map(({ data }) => data).toSorted()).toEqual(['1', '2', '3']);
    expect(second.output()).toMatch(/slot was lost/);
    const { lost_after, lost_before } = (await sourceState(shop.slot))!;
    expect([lost_after, lost_before]).toEqual([expect.stringMatching(/\//), expect.stringMatching(/\//)]);
    await eventually('the table is empty', async () => (await rowsLeft(shop)) === 0);
  });

  test('OUT-4: the relay reconnects after both connections were cut', async () => {
    const shop = await newShop('cdc');
    const tenant = newTenant();
    const relay = await start(shop);
    for (const round of [1, 2, 3]) {
      await emit(shop, { tenant, type: 'a', data: round });
      await insertRow(shop, tenant, String(round));
      const cut =
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'posthorn relay%'";
      await shop.query(`${cut} and datname = current_database()`);
      await posthorn.database.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name in ('posthorn ingest', 'posthorn api')",
      );
    }
    const events = await untilEvents(tenant, 6);
    expect(events.map(({ data }) => data).toSorted()).toEqual(['1', '1', '2', '2', '3', '3']);
    expect(relay.running).toBe(true);
  });
});

test('OUT-3: every statement of docs/relay.md runs', async () => {
  const shop = await newShop('cdc');
  const text = await readFile(new URL('../../docs/relay.md', import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/^```sql\n([\s\S]*?)^```/gm)].map((block) => block[1]!);
  expect(blocks.length).toBeGreaterThanOrEqual(3);
  await shop.query('create table orders (id int, total numeric)');
  const role = `relay_${randomUUID().slice(0, 8)}`;
  for (const block of blocks) await shop.query(block.replaceAll(/\brelay\b/g, role));
  expect(await rowsLeft(shop)).toBe(1);
  await shop.query(`drop owned by ${role}`);
  await shop.query(`drop role ${role}`);
});

describe('posthorn relay init and its error messages', () => {
  test('the SQL that --print shows is the SQL that is run, and can be run again', async () => {
    const shop = await newShop(null);
    const args = ['init', '--mode', 'cdc', '--slot', shop.slot];
    const printed = await runRelay([...args, '--print'], { from: shop.url, to: to() });
    expect(printed.ended).toBe(0);
    for (const statement of printed.output.split(/;\n\n/)) await shop.query(statement);
    for (const _ of [1, 2]) expect((await runRelay(args, { from: shop.url, to: to() })).ended).toBe(0);
  });

  test('each error message says what to do', async () => {
    const shop = await newShop(null);
    const run = (from: string, ...args: string[]) => runRelay(args, { from, to: to() });
    const role = `shop_${randomUUID().slice(0, 8)}`;
    await shop.query(`create role ${role} login password 'secret'`);
    onTestFinished(async () => {
      await shop.query(`drop owned by ${role}`);
      await shop.query(`drop role ${role}`);
    });
    const asRole = shop.url.replace(/\/\/[^@/]*@/, `//${role}:secret@`);
    const nowhere = await run('postgres://127.0.0.1:1/shop');
    expect(nowhere).toMatchObject({
      ended: 1,
      output: expect.stringMatching(/cannot be reached[\s\S]*--from/),
    });
    const noTable = await run(shop.url);
    expect(noTable).toMatchObject({
      ended: 1,
      output: expect.stringMatching(/no table posthorn_outbox[\s\S]*relay init/),
    });
    expect((await run(shop.url, 'init')).ended).toBe(0);
    const noPublication = await run(shop.url, '--mode', 'cdc');
    expect(noPublication).toMatchObject({ ended: 1, output: expect.stringContaining('no publication') });
    const noRights = await run(asRole);
    expect(noRights).toMatchObject({
      ended: 1,
      output: expect.stringContaining('grant select, update, delete'),
    });
    await shop.query(`grant select, update, delete on posthorn_outbox to ${role}`);
    const elsewhere = await runRelay([], { from: shop.url, to: shop.url });
    expect(elsewhere).toMatchObject({ ended: 1, output: expect.stringContaining('posthorn migrate') });
    const noReplication = await run(asRole, '--mode', 'cdc');
    expect(noReplication).toMatchObject({ ended: 1, output: expect.stringContaining('replication;') });
  });
});
