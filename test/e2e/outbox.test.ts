/** OUT-1: publishing from the user's own transaction, with nothing but SQL. */
import { readFile } from 'node:fs/promises';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isReservedHeader } from '../../src/deliver/index.ts';
import { idPrefixes, newId, parsePublicId, publicId } from '../../src/domain/ids.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';
import { Shop } from '../support/shop.ts';

const posthorn = usePosthorn({ inProcess: true });
let shop: Shop;
let tenant: string;
beforeAll(async () => {
  shop = await Shop.open(posthorn.database.url);
});
afterAll(() => shop.close());
beforeEach(() => {
  tenant = newTenant();
});

const waiting = async (): Promise<number> =>
  (await posthorn.database.query('select from posthorn.outbox')).length;
const outboxIsEmpty = () => eventually('the outbox is empty', async () => (await waiting()) === 0);
const eventOf = async (id: string) => (await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200)).body;

describe('OUT-1: posthorn.publish in the transaction of the caller', () => {
  test('a commit publishes the data byte for byte, under the returned id', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const data = ' { "b":1.10, "a":12345678901234567890,"\\u00e9":"é \\ud800 \\u0000", "10":[ ] ,"9":1e2}\n';
    const id = await shop.transaction((client) =>
      shop.publish(client, { type: 'order.created', data, tenant }),
    );
    const [request] = await receiver.waitFor(1);
    const event = await eventOf(id);
    expect(request!.headers['webhook-id']).toBe(id);
    expect(request!.body.toString()).toBe(
      `{"id":"${id}","type":"order.created","timestamp":"${event.created_at}","data":${data}}`,
    );
    expect(Math.abs(Date.parse(event.created_at) - Date.now())).toBeLessThan(10_000);
    await untilDeliveries(posthorn, id, 'delivered');
  });

  test('LIF-3: an event that a restored backup has in the outbox is not stored if it was expunged', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const expunged = await shop.transaction(async (client) => {
      const id = await shop.one(
        `select posthorn.publish('a.b', '1', $1, idempotency_key => 'k')`,
        [tenant],
        client,
      );
      // The archive or `posthorn expunged import` brought the tombstone back, before the event was there.
      await posthorn.database.query(
        "insert into posthorn.expunged (kind, id, applied_at) values ('event', $1, now())",
        [parsePublicId(idPrefixes.event, id)],
      );
      return id;
    });
    const other = await shop.transaction((client) =>
      shop.publish(client, { type: 'a.b', data: '2', tenant }),
    );
    await untilDeliveries(posthorn, other, 'delivered');
    await outboxIsEmpty();
    await expectStatus(posthorn.api('GET', `/v1/events/${expunged}`), 404);
    // As after every expunge, a repeated request is refused, and no hash confirms a guess of the payload.
    const repeated = { type: 'a.b', data: 1, tenant, idempotency_key: 'k' };
    const refused = await expectStatus(posthorn.api('POST', '/v1/events', repeated), 409);
    expect(refused.body.code).toBe('idempotency_conflict');
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([other]);
  });

  test('nothing is published before the commit or after a rollback', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const rolledBack = await shop.rollback((client) =>
      shop.publish(client, { type: 'a.b', data: '1', tenant }),
    );
    const held = await shop.transaction(async (client) => {
      const id = await shop.publish(client, { type: 'a.b', data: '2', tenant });
      // Another transaction commits, and its event arrives: so the server has read the outbox without the first event.
      await shop.transaction((other) => shop.publish(other, { type: 'a.b', data: '3', tenant }));
      await receiver.waitFor(1);
      expect(receiver.requests).toHaveLength(1);
      return id;
    });
    const requests = await receiver.waitFor(2);
    expect(requests.map(({ body }) => JSON.parse(body.toString()).data)).toEqual([3, 2]);
    expect((await eventOf(held)).deliveries).toBe(1);
    await expectStatus(posthorn.api('GET', `/v1/events/${rolledBack}`), 404);
  });

  test('accepts the same fields as POST /v1/events', async () => {
    const receiver = await newReceiver();
    const one = await createEndpoint(posthorn, { url: `${receiver.url}/one`, tenant, channels: ['eu'] });
    const two = await createEndpoint(posthorn, { url: `${receiver.url}/two`, tenant });
    await createEndpoint(posthorn, { url: `${receiver.url}/three`, tenant, channels: ['us'] });
    const inChannel = await shop.one(
      `select posthorn.publish(type => 'a.b', data => '1', tenant => $1, channels => '{eu}',
         headers => '{"x-shop": "south"}', schema_version => '2', idempotency_key => 'takes-all')`,
      [tenant],
    );
    await untilDeliveries(posthorn, inChannel, 'delivered', { count: 2 });
    expect(await eventOf(inChannel)).toMatchObject({
      channels: ['eu'],
      headers: { 'x-shop': 'south' },
      schema_version: '2',
      idempotency_key: 'takes-all',
      endpoint_ids: null,
      deliver_at: null,
    });
    expect(receiver.requests.map(({ path, headers }) => [path, headers['x-shop']]).sort()).toEqual([
      ['/one', 'south'],
      ['/two', 'south'],
    ]);
    const targeted = await shop.one(
      `select posthorn.publish('a.b', '2', $1, endpoint_ids => array[$2, $3], deliver_at => '2099-01-31 12:00:00.125+00')`,
      [tenant, one.id, two.id],
    );
    await untilDeliveries(posthorn, targeted, 'pending', { count: 2 });
    expect(await eventOf(targeted)).toMatchObject({
      endpoint_ids: [one.id, two.id],
      deliver_at: '2099-01-31T12:00:00.125Z',
    });
    const [delivery] = await deliveriesOf(posthorn, targeted);
    expect(delivery).toMatchObject({ next_attempt_at: '2099-01-31T12:00:00.125Z' });
  });

  test('an event without a tenant goes to the default tenant, and without endpoints it has no deliveries', async () => {
    const id = await shop.one(`select posthorn.publish('nobody.listens', 'null')`);
    await outboxIsEmpty();
    expect(await eventOf(id)).toMatchObject({ tenant: 'default', deliveries: 0, data: null });
  });

  test('an event reaches its receiver within tens of milliseconds after the commit', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const latencies: number[] = [];
    for (let n = 1; n <= 30; n += 1) {
      await shop.transaction((client) => shop.publish(client, { type: 'a.b', data: String(n), tenant }));
      const committedAt = performance.now();
      await receiver.waitFor(n);
      latencies.push(performance.now() - committedAt);
    }
    // A loose bound, because the machine is shared. It shows that the server polls every 20 ms, not every second as a stand-in.
    expect(latencies.sort((a, b) => a - b)[15]).toBeLessThan(500);
  });

  test('FIFO endpoints get the order within a transaction and of consecutive transactions', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant, ordering: 'fifo' });
    for (let n = 0; n < 40; n += 4) {
      await shop.transaction(async (client) => {
        for (let k = n; k < n + 4; k += 1)
          await shop.publish(client, { type: 'a.b', data: String(k), tenant });
      });
    }
    const requests = await receiver.waitFor(40);
    expect(requests.map(({ body }) => JSON.parse(body.toString()).data)).toEqual(
      Array.from({ length: 40 }, (_, n) => n),
    );
  });
});

describe('OUT-1: invalid events raise an error at the call that says what to do', () => {
  const refused = async (sql: string, values: unknown[] = []) =>
    shop.one(sql, values).then(
      () => expect.fail('it was published'),
      (error: pg.DatabaseError) => ({ code: error.code, message: error.message, hint: error.hint }),
    );

  test.each<[string, string, RegExp]>([
    ['null type', `select posthorn.publish(null, '1')`, /type null is not an event type/],
    [
      'bad type',
      `select posthorn.publish('order created', '1')`,
      /type 'order created' is not an event type/,
    ],
    ['type with a line break', `select posthorn.publish(E'a.b\\n', '1')`, /is not an event type/],
    ['long type', `select posthorn.publish(repeat('a', 129), '1')`, /is not an event type/],
    ['reserved type', `select posthorn.publish('posthorn.x', '1')`, /reserved/],
    ['no data', `select posthorn.publish('a.b', null)`, /data is required/],
    ['no JSON', `select posthorn.publish('a.b', '{')`, /invalid input syntax for type json/],
    [
      'too large',
      `select posthorn.publish('a.b', to_json(repeat('a', 300000)))`,
      /300002 bytes, at most 262144/,
    ],
    ['bad tenant', `select posthorn.publish('a.b', '1', 'a b')`, /tenant 'a b' is not a tenant id/],
    [
      'empty key',
      `select posthorn.publish('a.b', '1', idempotency_key => '')`,
      /idempotency_key must be 1 to 255/,
    ],
    ['empty channel', `select posthorn.publish('a.b', '1', channels => '{a,""}')`, /channels must be/],
    [
      'no endpoint id',
      `select posthorn.publish('a.b', '1', endpoint_ids => '{nonsense}')`,
      /endpoint_ids\[1\] is not/,
    ],
    [
      'infinite time',
      `select posthorn.publish('a.b', '1', deliver_at => 'infinity')`,
      /deliver_at must be a time/,
    ],
    [
      'headers no object',
      `select posthorn.publish('a.b', '1', headers => '[]')`,
      /headers must be a JSON object/,
    ],
    [
      'bad header',
      `select posthorn.publish('a.b', '1', headers => '{"a b": "c"}')`,
      /"a b" is not a valid header name/,
    ],
    [
      'the same header twice',
      `select posthorn.publish('a.b', '1', headers => '{"X-A": "1", "x-a": "2"}')`,
      /"(X-A|x-a)" and "(X-A|x-a)" are the same header/,
    ],
    ['header no text', `select posthorn.publish('a.b', '1', headers => '{"a": 1}')`, /"a" must be printable/],
    [
      'long version',
      `select posthorn.publish('a.b', '1', schema_version => repeat('v', 65))`,
      /schema_version must be/,
    ],
  ])('%s', async (_what, sql, message) => {
    expect((await refused(sql)).message).toMatch(message);
  });

  test('an endpoint that is unknown, disabled or of another tenant is refused', async () => {
    const { url } = await newReceiver();
    const other = await createEndpoint(posthorn, { url, tenant: newTenant() });
    const off = await createEndpoint(posthorn, { url, tenant });
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${off.id}`, { enabled: false }), 200);
    for (const id of [publicId(idPrefixes.endpoint, newId(Date.now())), other.id, off.id]) {
      const error = await refused(`select posthorn.publish('a.b', '1', $1, endpoint_ids => array[$2])`, [
        tenant,
        id,
      ]);
      expect(error.code).toBe('22023');
      expect(error.message).toContain(`the tenant "${tenant}" has no enabled endpoint ${id}`);
      expect(error.hint).toContain('Leave endpoint_ids out');
    }
  });

  test('deliver_at is refused if a FIFO endpoint is named', async () => {
    const { url } = await newReceiver();
    const own = newTenant();
    const fifo = await createEndpoint(posthorn, { url, tenant: own, ordering: 'fifo' });
    const publishAt = `select posthorn.publish('a.b', '1', $1, endpoint_ids => array[$2], deliver_at => now() + $3)`;
    const error = await refused(publishAt, [own, fifo.id, '1 hour']);
    expect(error.code).toBe('22023');
    expect(error.message).toContain(`deliver_at: endpoint_ids[1] (${fifo.id}) is a FIFO endpoint`);
    expect(error.hint).toBe('Leave deliver_at out, or that endpoint.');
    await shop.one(publishAt, [own, fifo.id, '-1 hour']);
    await shop.one(`select posthorn.publish('a.b', '1', $1, deliver_at => now() + '1 hour')`, [own]);
  });

  test('the reserved headers are the same as in the API', async () => {
    const source = await readFile(new URL('../../src/deliver/headers.ts', import.meta.url), 'utf8');
    const lists = [...source.matchAll(/const RESERVED\w* = (?:new Set\()?\[([^\]]+)\]/g)].map(
      ([, list]) => list!,
    );
    expect(lists).toHaveLength(2);
    const names = lists.flatMap((list) => [...list.matchAll(/'([^']+)'/g)].map(([, name]) => name!));
    expect(names.length).toBeGreaterThan(15);
    for (const name of names.filter((text) => text !== ':')) {
      const header = name.endsWith('-') ? `${name}anything` : name.toUpperCase();
      expect(isReservedHeader(header), header).toBe(true);
      const sql = `select posthorn.publish('a.b', '1', headers => json_build_object($1::text, 'x'))`;
      expect((await refused(sql, [header])).message).toContain('is reserved');
    }
  });

  test('public ids are the same in SQL and in TypeScript', async () => {
    for (let n = 0; n < 20; n += 1) {
      const id = newId(Date.now());
      const shown = publicId('ep', id);
      const [row] = await posthorn.database.query(
        `select posthorn.public_id('ep', $1) as shown, posthorn.private_id('ep', $2) as id, posthorn.private_id('evt', $2) as wrong`,
        [id, shown],
      );
      expect(row).toEqual({ shown, id, wrong: null });
      expect(parsePublicId('ep', shown)).toBe(id);
    }
  });
});

describe('OUT-1: idempotency keys (ACC-4)', () => {
  test('the same key and data return the first id and cause one delivery, in SQL and over HTTP', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const sql = `select posthorn.publish('a.b', '{"n":1}', $1, 'once')`;
    const twice = await shop.transaction(async (client) => [
      await shop.one(sql, [tenant], client),
      await shop.one(sql, [tenant], client),
    ]);
    expect(twice[0]).toBe(twice[1]);
    await outboxIsEmpty();
    expect(await shop.one(sql, [tenant])).toBe(twice[0]);
    const overHttp = await publish(
      posthorn,
      `{"type":"a.b","data":{"n":1},"tenant":"${tenant}","idempotency_key":"once"}`,
    );
    expect(overHttp).toMatchObject({ id: twice[0], duplicate: true });
    const over = await publish(
      posthorn,
      `{"type":"a.b","data":{"n":2},"tenant":"${tenant}","idempotency_key":"http"}`,
    );
    expect(await shop.one(`select posthorn.publish('a.b', '{"n":2}', $1, 'http')`, [tenant])).toBe(over.id);
    const last = await shop.one(`select posthorn.publish('a.b', '3', $1)`, [tenant]);
    await untilDeliveries(posthorn, last, 'delivered');
    expect(receiver.requests).toHaveLength(3);
  });

  test('the same key with other data is an error, whether the first event is still in the outbox or stored', async () => {
    const first = await shop.transaction(async (client) => {
      const id = await shop.one(`select posthorn.publish('a.b', '1', $1, 'k')`, [tenant], client);
      await client.query('savepoint before');
      await expect(
        shop.one(`select posthorn.publish('a.b', '2', $1, 'k')`, [tenant], client),
      ).rejects.toMatchObject({
        code: '23505',
        detail: `It belongs to ${id}.`,
      });
      await client.query('rollback to before');
      return id;
    });
    await outboxIsEmpty();
    await expect(shop.one(`select posthorn.publish('a.b', '2', $1, 'k')`, [tenant])).rejects.toMatchObject({
      message: "posthorn.publish: the idempotency key 'k' was used for an event with another type or data",
      detail: `It belongs to ${first}.`,
    });
  });

  test('the second of two concurrent transactions with one key waits for the first and returns its id', async () => {
    const sql = `select posthorn.publish('a.b', '1', $1, 'race')`;
    let second: Promise<string> | undefined;
    const first = await shop.transaction(async (client) => {
      const id = await shop.one(sql, [tenant], client);
      second = shop.one(sql, [tenant]);
      await eventually(
        'the second waits',
        async () =>
          (
            await posthorn.database.query(
              `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%race%'`,
            )
          ).length === 1,
      );
      return id;
    });
    expect(await second).toBe(first);
  });

  test('the second also returns the id of the first if that one became an event while it waited', async () => {
    const sql = `select posthorn.publish('a.b', '1', $1, 'moved')`;
    let second: Promise<string> | undefined;
    const first = await shop.transaction(async (client) => {
      const id = await shop.one(sql, [tenant], client);
      second = shop.one(sql, [tenant]);
      await eventually(
        'the second waits',
        async () =>
          (
            await posthorn.database.query(
              `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%moved%'`,
            )
          ).length === 1,
      );
      // Does what the server does with the row, before the second transaction continues.
      await client.query(
        `with row as (delete from posthorn.outbox where idempotency_key = 'moved' returning *)
         insert into posthorn.idempotency_keys (tenant, key, event_id, fingerprint, expires_at)
         select tenant, idempotency_key, id, fingerprint, now() + interval '1 hour' from row`,
      );
      return id;
    });
    expect(await second).toBe(first);
    expect(
      await posthorn.database.query(`select from posthorn.outbox where idempotency_key = 'moved'`),
    ).toEqual([]);
  });

  test('an event whose key was used over HTTP before the commit is stored with the reason, but not delivered', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    let overHttp: string | undefined;
    const [same, other] = await shop.transaction(async (client) => {
      const ids = [
        await shop.one(`select posthorn.publish('a.b', '1', $1, 'same')`, [tenant], client),
        await shop.one(`select posthorn.publish('a.b', '2', $1, 'other')`, [tenant], client),
      ];
      overHttp = (
        await publish(posthorn, `{"type":"a.b","data":1,"tenant":"${tenant}","idempotency_key":"same"}`)
      ).id;
      await publish(posthorn, `{"type":"a.b","data":3,"tenant":"${tenant}","idempotency_key":"other"}`);
      return ids;
    });
    await untilDeliveries(posthorn, other!, 'delivered');
    await outboxIsEmpty();
    expect(await eventOf(same!)).toMatchObject({
      deliveries: 0,
      duplicate_of: overHttp,
      idempotency_key: null,
    });
    expect(await eventOf(other!)).toMatchObject({ deliveries: 1, idempotency_key: null, duplicate_of: null });
    expect((await eventOf(other!)).key_conflict_with).toMatch(/^evt_/);
    expect(receiver.requests.map(({ body }) => JSON.parse(body.toString()).data).sort()).toEqual([1, 2, 3]);
  });
});

describe('OUT-1: a row that cannot become an event is stored as rejected and blocks no other row', () => {
  test('rows that were inserted by hand with one id are all kept, and later rows are published', async () => {
    const id = newId(0);
    for (const type of ['by hand 1', 'by hand 2'])
      await posthorn.database.query(
        "insert into posthorn.outbox (id, tenant, type, data) select $1, $2, $3, '1' from generate_series(1, 2)",
        [id, tenant, type],
      );
    const behind = await shop.transaction((client) => shop.publish(client, { type: 'a', data: '1', tenant }));
    await outboxIsEmpty();
    await eventOf(behind);
    const kept = await posthorn.database.query<{ id: string; type: string }>(
      "delete from posthorn.outbox_rejected where type like 'by hand %' returning id, type",
    );
    expect(kept.map(({ type }) => type).sort()).toEqual(['by hand 1', 'by hand 1', 'by hand 2', 'by hand 2']);
    expect(kept.filter((row) => row.id === id)).toHaveLength(1);
  });

  test('rows that are invalid or that the database refuses are rejected', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    await posthorn.database.query(`
      create function no_poison() returns trigger language plpgsql as $$ begin
        if new.type = 'poison.data' then raise exception 'no poison here' using errcode = '23514', constraint = 'no_poison'; end if;
        if new.type = 'poison.other' then raise exception 'not today'; end if;
        return new; end $$;
      create trigger no_poison before insert on posthorn.events for each row execute function no_poison()`);
    const ids = await shop.transaction(async (client) => {
      await client.query(
        `insert into posthorn.outbox (id, tenant, type, data) values ($1, $2, 'by hand, "badly"', '1')`,
        ['01900000-0000-7000-8000-000000010000', tenant],
      );
      const one = await shop.publish(client, { type: 'poison.data', data: '1', tenant });
      const two = await shop.publish(client, { type: 'poison.other', data: '1', tenant });
      return [one, two, await shop.publish(client, { type: 'a.b', data: '1', tenant })];
    });
    await untilDeliveries(posthorn, ids[2]!, 'delivered');
    await outboxIsEmpty();
    const rejected = await posthorn.database.query<{ type: string; reason: string }>(
      'select type, reason from posthorn.outbox_rejected order by type',
    );
    expect(rejected).toEqual([
      { type: 'by hand, "badly"', reason: 'type: is not an event type' },
      { type: 'poison.data', reason: expect.stringContaining('no poison here') },
      { type: 'poison.other', reason: 'not today' },
    ]);
    expect((await posthorn.api('GET', '/readyz')).body).toMatchObject({
      status: 'ready',
      outbox: { rejected: 3 },
    });

    await posthorn.database.query('drop trigger no_poison on posthorn.events');
    await posthorn.database.query('select posthorn.retry_rejected($1)', [ids[0]]);
    await untilDeliveries(posthorn, ids[0]!, 'delivered');
    await posthorn.database.query(`delete from posthorn.outbox_rejected where type like 'by hand%'`);
    await posthorn.database.query('select posthorn.retry_rejected()');
    await untilDeliveries(posthorn, ids[1]!, 'delivered');
    expect(await posthorn.database.query('select from posthorn.outbox_rejected')).toEqual([]);
  });

  test('an endpoint that is deleted between publish and commit does not block the event', async () => {
    const { url } = await newReceiver();
    const endpoint = await createEndpoint(posthorn, { url, tenant });
    const id = await shop.transaction(async (client) => {
      const made = await shop.one(
        `select posthorn.publish('a.b', '1', $1, endpoint_ids => array[$2])`,
        [tenant, endpoint.id],
        client,
      );
      await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${endpoint.id}`), 204);
      return made;
    });
    await outboxIsEmpty();
    expect(await eventOf(id)).toMatchObject({ deliveries: 0, endpoint_ids: [endpoint.id] });
  });

  test('a row that waited for months keeps its id and its place and is delivered', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const id = '018c251e-0000-7abc-8abc-012345670000';
    await posthorn.database.query(
      `insert into posthorn.outbox (id, tenant, type, data, created_at) values ($1, $2, 'a.b', '1', '2023-12-01')`,
      [id, tenant],
    );
    const [delivery] = await untilDeliveries(posthorn, publicId('evt', id), 'delivered');
    expect(delivery!.attempts).toBe(1);
    expect((await eventOf(publicId('evt', id))).created_at).toMatch(/^2023-12-01/);
  });

  test('OUT-1: an event that was published while the clock of the database was 40 days ahead keeps its id and is delivered', async () => {
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const time = Date.now() + 40 * 86_400_000;
    const uuid = newId(time).replace(/.{4}$/, '0000');
    await posthorn.database.query(
      `insert into posthorn.outbox (id, tenant, type, data, created_at) values ($1, $2, 'a.b', '1', to_timestamp($3))`,
      [uuid, tenant, time / 1000],
    );
    const id = publicId('evt', uuid);
    const [delivery] = await untilDeliveries(posthorn, id, 'delivered');
    expect(delivery!.attempts).toBe(1);
    expect(receiver.requests[0]!.headers['webhook-id']).toBe(id);
    expect(await eventOf(id)).toMatchObject({ id, deliveries: 1 });
    const listed = await expectStatus(posthorn.api('GET', `/v1/events?tenant=${tenant}`), 200);
    expect(listed.body.data.map((event: { id: string }) => event.id)).toEqual([id]);
    const attempts = await expectStatus(posthorn.api('GET', `/v1/deliveries/${delivery!.id}/attempts`), 200);
    expect(attempts.body.data).toHaveLength(1);
    const next = await shop.transaction((client) => shop.publish(client, { type: 'a.b', data: '2', tenant }));
    await untilDeliveries(posthorn, next, 'delivered');
  });
});
