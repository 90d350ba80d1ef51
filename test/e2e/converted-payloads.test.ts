import { expect, onTestFinished, test } from 'vitest';
import { firstIdAt, newEventId } from '../../src/domain/ids.ts';
import { conversionName } from '../../src/ports/conversion-store.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { deleteOrphanedConversions, keepConversions } from '../../src/postgres/queries/conversions.ts';
import { createTestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  startTestPosthorn,
} from '../support/posthorn.ts';

test('VER-2, LIF-1: converted payloads are deleted with their event, and not before', async () => {
  const database = await createTestDatabase();
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(async () => {
    await opened.close();
    await database.drop();
  });
  const now = Date.now();
  const [kept, gone, young] = [newEventId(now - 2_000), newEventId(now - 1_000), newEventId(now + 5_000)];
  await database.query("insert into posthorn.tenants (id) values ('acme')");
  await database.query(
    "insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, 'acme', 'a.b', '1', 0)",
    [kept],
  );
  for (const id of [kept, gone, young])
    await database.query(
      "insert into posthorn.converted_payloads values ($1, 'v1', 'ab', '1'), ($1, 'v2', 'ab', '1')",
      [id],
    );
  await deleteOrphanedConversions(opened.pool('upkeep'), firstIdAt(now + 1), () => false);
  const left = await database.query(
    'select distinct event_id as id from posthorn.converted_payloads order by 1',
  );
  expect(left.map(({ id }) => id)).toEqual([kept, young]);
});

test('VER-2: a locked event delays neither the conversions of other events nor the connection', async () => {
  const database = await createTestDatabase();
  const opened = openDatabase({
    connectionString: database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(async () => {
    await opened.close();
    await database.drop();
  });
  const [locked, free, gone] = [newEventId(Date.now()), newEventId(Date.now()), newEventId(Date.now())];
  await database.query("insert into posthorn.tenants (id) values ('acme')");
  for (const id of [locked, free])
    await database.query(
      "insert into posthorn.events (id, tenant, type, data, deliveries) values ($1, 'acme', 'a.b', '1', 0)",
      [id],
    );
  const keep = async () => {
    const data = Buffer.from('2');
    const conversions = [locked, free, gone].map((eventId) => ({
      eventId,
      version: 'v1',
      converter: 'ab',
      data,
    }));
    const stored = await keepConversions(opened.pool('dispatch'), conversions);
    return conversions.map(
      (each) => stored.get(conversionName(each))?.toString() ?? stored.has(conversionName(each)),
    );
  };
  const client = await opened.pool('upkeep').connect();
  await client.query('begin');
  await client.query('select from posthorn.events where id = $1 for update', [locked]);
  // Neither stored nor known to be gone; stored; known to be gone.
  expect(await keep()).toEqual([false, '2', true]);
  await client.query('rollback');
  client.release();
  expect(await keep()).toEqual(['2', '2', true]);
});

test('VER-2, LIF-3: an expunge by a node of the previous release deletes what is derived from the payload, too', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const [gone, kept] = [newEventId(Date.now()), newEventId(Date.now())];
  await database.query("insert into posthorn.tenants (id) values ('acme')");
  for (const id of [gone, kept]) {
    await database.query(
      `insert into posthorn.events (id, tenant, type, data, deliveries, options)
       values ($1, 'acme', 'a.b', '1', 0, '{"schema_version":"v2","schema_errors":[{"path":"data.name","message":"x"}]}')`,
      [id],
    );
    await database.query("insert into posthorn.converted_payloads values ($1, 'v1', 'ab', '1')", [id]);
    await database.query(
      `insert into posthorn.schema_failures (id, tenant, event_type, event_id, path, message)
       values (gen_random_uuid(), 'acme', 'a.b', $1, 'data.name', 'x')`,
      [id],
    );
  }
  // What it knows of.
  await database.query('update posthorn.events set data = null where id = $1', [gone]);
  await database.query('select posthorn.expunge_copies(array[$1::uuid])', [gone]);
  for (const table of ['converted_payloads', 'schema_failures'])
    expect(await database.query(`select event_id from posthorn.${table}`)).toEqual([{ event_id: kept }]);
  const events = await database.query('select id, options from posthorn.events order by data nulls first');
  expect(events).toMatchObject([{ id: gone }, { id: kept, options: { schema_errors: [{ message: 'x' }] } }]);
  expect(events[0]!.options).toEqual({ schema_version: 'v2' });
});

test('VER-2, OBS-4: the operator and the tenants that pin a version get one event when it passes its sunset', async () => {
  const database = await createTestDatabase();
  const posthorn = await startTestPosthorn({
    database,
    inProcess: true,
    env: { POSTHORN_OPERATIONAL_EVENTS_MS: '30ms', POSTHORN_OPERATIONAL_LEVELS_MS: '30ms' },
  });
  onTestFinished(async () => {
    await posthorn.stop();
    await database.drop();
  });
  const [operator, own, stranger] = [await newReceiver(), await newReceiver(), await newReceiver()];
  const [tenant, other] = [newTenant(), newTenant()];
  const events = ['posthorn.version.sunset'];
  await expectStatus(
    posthorn.api('POST', '/v1/endpoints', { operator: true, url: operator.url, events }),
    201,
  );
  await createEndpoint(posthorn, { url: own.url, tenant, events });
  await createEndpoint(posthorn, { url: stranger.url, tenant: other, events });
  const pinned = await createEndpoint(posthorn, { url: 'https://example.com/', tenant, api_version: 'v1' });
  const put = (version: string, body: object) =>
    expectStatus(posthorn.api('PUT', `/v1/event-types/order.created/versions/${version}`, body), 201);
  await put('v1', { status: 'deprecated' });
  await put('v2', {});
  await eventually('the version is known', async () => {
    const { body } = await posthorn.api('GET', '/v1/event-types/order.created/pins');
    return body.data[0]?.version === 'v1';
  });
  const sunset_at = '2026-01-31T00:00:00.000Z';
  const path = '/v1/event-types/order.created/versions/v1';
  await expectStatus(posthorn.api('PUT', path, { status: 'deprecated', sunset_at }), 200);
  const expected = {
    event_type: 'order.created',
    version: 'v1',
    sunset_at,
    pinned: 1,
    endpoints: [{ id: pinned.id, tenant, api_version: 'v1' }],
  };
  for (const receiver of [operator, own]) {
    const [request] = await receiver.waitFor(1);
    expect(request!.json().data).toMatchObject(expected);
  }
  // A second sunset is told of again. By then a repetition of the first would have arrived, too.
  await expectStatus(
    posthorn.api('PUT', path, { status: 'deprecated', sunset_at: '2026-02-28T00:00:00.000Z' }),
    200,
  );
  const requests = await operator.waitFor(2);
  expect(requests.map((request) => request.json().data.sunset_at)).toEqual([
    sunset_at,
    '2026-02-28T00:00:00.000Z',
  ]);
  expect(stranger.requests).toHaveLength(0);
});

test('VER-2, OBS-4: the operator, the tenants that subscribe, and their notifiers learn that a type passed its sunset', async () => {
  const database = await createTestDatabase();
  const posthorn = await startTestPosthorn({
    database,
    inProcess: true,
    env: {
      POSTHORN_OPERATIONAL_EVENTS_MS: '30ms',
      POSTHORN_OPERATIONAL_LEVELS_MS: '30ms',
      POSTHORN_NOTICE_WINDOW_MS: '1s',
    },
  });
  onTestFinished(async () => {
    await posthorn.stop();
    await database.drop();
  });
  const receivers = {
    operator: await newReceiver(),
    own: await newReceiver(),
    stranger: await newReceiver(),
  };
  const chats = { operator: await newReceiver(), own: await newReceiver(), stranger: await newReceiver() };
  const [tenant, other] = [newTenant(), newTenant()];
  const events = ['posthorn.event_type.sunset'];
  const operator = { operator: true, url: receivers.operator.url, events };
  await expectStatus(posthorn.api('POST', '/v1/endpoints', operator), 201);
  await createEndpoint(posthorn, { url: receivers.own.url, tenant, events });
  await createEndpoint(posthorn, { url: receivers.stranger.url, tenant: other, events });
  const notify = (body: object) =>
    expectStatus(posthorn.api('POST', '/v1/notifiers', { kind: 'slack', ...body }), 201);
  await notify({ operator: true, url: chats.operator.url });
  await notify({ tenant, url: chats.own.url });
  await notify({ tenant: other, url: chats.stranger.url });
  const subscribed = await createEndpoint(posthorn, {
    url: 'https://example.com/',
    tenant,
    events: ['order.*'],
  });
  const put = (sunset_at: string) => posthorn.api('PUT', '/v1/event-types/order.created', { sunset_at });
  const sunset_at = '2026-01-31T00:00:00.000Z';
  await expectStatus(put(sunset_at), 201);
  for (const receiver of [receivers.operator, receivers.own]) {
    const [request] = await receiver.waitFor(1);
    expect(request!.json().data).toEqual({
      at: expect.any(String),
      event_type: 'order.created',
      subscribed: 1,
      sunset_at,
      endpoints: [
        { id: subscribed.id, tenant, api_version: null, console_url: expect.stringContaining(subscribed.id) },
      ],
      console_url: expect.stringContaining('/console/event-types/order.created'),
    });
  }
  for (const chat of [chats.operator, chats.own]) {
    const [message] = await chat.waitFor(1);
    expect(message!.json().text).toContain('1 event type past its sunset');
    expect(message!.json().text).toContain('order.created, 1 endpoint subscribes');
  }
  // A second sunset is told of again. By then a repetition of the first would have arrived, too.
  await expectStatus(put('2026-02-28T00:00:00.000Z'), 200);
  const requests = await receivers.operator.waitFor(2);
  expect(requests.map((request) => request.json().data.sunset_at)).toEqual([
    sunset_at,
    '2026-02-28T00:00:00.000Z',
  ]);
  for (const { requests } of [receivers.stranger, chats.stranger]) expect(requests).toHaveLength(0);
});
