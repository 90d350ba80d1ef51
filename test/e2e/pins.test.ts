import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  deliveriesOf,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  startTestPosthorn,
  type TestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

const CONFIG = `
  interface New { first: string; last: string; broken?: boolean }
  let runs = 0;
  export default {
    converters: {
      'order.created': {
        '2026-04-01→2025-10-01': (data: New) => {
          if (data.broken) throw new Error('BROKEN');
          runs += 1;
          return { name: data.first + ' ' + data.last, runs };
        },
        '2025-10-01->2025-01-01': (data: { name: string }) => [data.name],
        '2025-10-01->2026-04-01': (data: { name: string }) => {
          const [first, last] = data.name.split(' ');
          return { first, last };
        },
      },
    },
  };
`;

let folder: string;
let database: TestDatabase;
let posthorn: TestPosthorn;
const start = () =>
  startTestPosthorn({
    database,
    env: { POSTHORN_CONFIG: path.join(folder, 'posthorn.config.ts'), POSTHORN_CONVERTER_TIMEOUT_MS: '5s' },
  });
const writeConfig = (text: string): void => writeFileSync(path.join(folder, 'posthorn.config.ts'), text);
const putVersion = (version: string, body: object = {}, type = 'order.created') =>
  posthorn.api('PUT', `/v1/event-types/${type}/versions/${version}`, body);

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'posthorn-pins-'));
  writeConfig(CONFIG);
  database = await createTestDatabase();
  posthorn = await start();
  for (const version of ['2025-01-01', '2025-10-01', '2026-04-01'])
    await expectStatus(putVersion(version), 201);
  await expectStatus(putVersion('v1', {}, 'order.paid'), 201);
  // Until the cache of the process has the versions.
  await eventually('the versions are known', async () => {
    const pinned = await posthorn.api('POST', '/v1/endpoints', {
      url: 'http://127.0.0.1:1/',
      tenant: 'probe',
      api_version: 'v1',
    });
    const pins = (await posthorn.api('GET', '/v1/event-types/order.paid/pins')).body.data;
    await posthorn.api('DELETE', `/v1/endpoints/${pinned.body.id}`);
    return pins.some(({ version }: { version: string | null }) => version === 'v1');
  });
});
afterAll(async () => {
  await posthorn?.stop();
  await database?.drop();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

const ANN = { first: 'Ann', last: 'Lee' };
const order = (tenant: string, more: Record<string, unknown> = {}) =>
  publish(posthorn, { tenant, type: 'order.created', data: ANN, schema_version: '2026-04-01', ...more });
const sentRequest = (deliveryId: string, number: number) =>
  posthorn.api('GET', `/v1/deliveries/${deliveryId}/attempts/${number}/request`);

describe('VER-2: pins', () => {
  test('each endpoint gets the version that it pins, and endpoints with the same version share a conversion', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const pins = [null, '2026-04-01', '2025-10-01', '2026-01-15', '2025-01-01', '2024-01-01', 'v7'];
    const secrets = new Map<string, string>();
    for (const [index, api_version] of pins.entries()) {
      const url = `${receiver.url}/${index}`;
      secrets.set(`/${index}`, (await createEndpoint(posthorn, { url, tenant, api_version })).secret);
    }
    const { id } = await order(tenant);
    await receiver.waitFor(pins.length);
    const byPath = Object.fromEntries(receiver.requests.map((request) => [request.path, request]));
    const data = pins.map((_, index) => byPath[`/${index}`]!.json().data);
    const { runs } = data[2];
    expect(data).toEqual([
      ANN,
      ANN,
      { name: 'Ann Lee', runs },
      { name: 'Ann Lee', runs },
      ['Ann Lee'],
      ANN,
      ANN,
    ]);
    const notes = pins.map((_, index) => byPath[`/${index}`]!.headers['posthorn-conversion'] ?? null);
    const converted = (to: string) =>
      expect.stringMatching(new RegExp(`^converted;from="2026-04-01";to="${to}";converter="[0-9a-f]{32}"$`));
    const asPublished = 'as-published;reason="no_matching_version"';
    expect(notes).toEqual([
      null,
      null,
      converted('2025-10-01'),
      converted('2025-10-01'),
      converted('2025-01-01'),
      asPublished,
      asPublished,
    ]);
    expect(byPath['/3']!.json()).toMatchObject({ schema_version: '2025-10-01', api_version: '2026-01-15' });
    // The converted bytes are what is signed.
    for (const [at, secret] of secrets) {
      const { body, headers } = byPath[at]!;
      new Webhook(secret).verify(body.toString(), headers as Record<string, string>);
    }
    await untilDeliveries(posthorn, id, 'delivered', { count: pins.length });
    for (const delivery of await deliveriesOf(posthorn, id)) {
      const sent = await sentRequest(delivery.id, 1);
      expect(sent.text).toBe(
        receiver.requests
          .find(({ headers }) => headers['posthorn-delivery'] === delivery.id)!
          .body.toString(),
      );
      const [attempt] = await attemptsOf(posthorn, delivery.id);
      expect((attempt as unknown as { conversion: unknown }).conversion).toEqual(
        sent.headers['posthorn-conversion'] === undefined
          ? null
          : expect.objectContaining({ status: expect.any(String) }),
      );
    }
    const { body: text } = await posthorn.api('GET', '/metrics').then(({ text }) => ({ body: text }));
    expect(text).toMatch(/posthorn_as_published_total\{reason="no_matching_version"\} [1-9]/);
    expect(text).toMatch(/posthorn_conversions_total\{result="converted"\} [1-9]/);
  });

  test('an event in an older version is converted upwards, and a type without converters is sent as it is', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant, api_version: '2026-04-01' });
    await order(tenant, { schema_version: '2025-10-01', data: { name: 'Ann Lee' } });
    await publish(posthorn, { tenant, type: 'order.paid', data: 1, schema_version: 'v1' });
    await publish(posthorn, { tenant, type: 'order.shipped', data: 2 });
    const stuck = await order(tenant, { schema_version: '2025-01-01', data: ['Ann Lee'] });
    const requests = await receiver.waitFor(4);
    const isStuck = ({ headers }: (typeof requests)[number]) => headers['webhook-id'] === stuck.id;
    const seen = Object.fromEntries(
      requests.map((request) => [
        isStuck(request) ? 'stuck' : request.json().type,
        [request.json().data, request.headers['posthorn-conversion']],
      ]),
    );
    expect(seen.stuck).toEqual([['Ann Lee'], 'as-published;reason="no_converter"']);
    expect((await posthorn.api('GET', '/metrics')).text).toMatch(
      /posthorn_as_published_total\{reason="no_converter"\} [1-9]/,
    );
    expect(seen['order.created'][0]).toEqual(ANN);
    expect(seen['order.paid']).toEqual([1, 'as-published;reason="no_matching_version"']);
    expect(seen['order.shipped']).toEqual([2, 'as-published;reason="no_versions"']);
  });

  test('a new endpoint pins the version of its tenant, unless it says something else', async () => {
    const tenant = newTenant();
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { api_version: '2025-10-01' }), 201);
    const create = async (more: object) =>
      (
        await expectStatus(
          posthorn.api('POST', '/v1/endpoints', { url: 'https://example.com/', tenant, ...more }),
          201,
        )
      ).body;
    expect(await create({})).toMatchObject({ api_version: '2025-10-01' });
    expect(await create({ api_version: null })).toMatchObject({ api_version: null });
    const own = await create({ api_version: 'v2' });
    expect(own).toMatchObject({ api_version: 'v2' });
    const patched = await posthorn.api('PATCH', `/v1/endpoints/${own.id}`, { api_version: '2026-04-01' });
    expect(patched.body).toMatchObject({ api_version: '2026-04-01' });
  });

  test('a dry run shows both payloads of a recent event side by side', async () => {
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: 'http://127.0.0.1:1/',
      tenant,
      events: ['order.*'],
      paused: true,
    });
    const preview = (body: object) => posthorn.api('POST', `/v1/endpoints/${endpoint.id}/preview`, body);
    await expectStatus(preview({ api_version: '2025-10-01' }), 404);
    const event = await order(tenant);
    // A newer event whose version would not change is less useful.
    const other = await publish(posthorn, { tenant, type: 'order.paid', data: 1 });
    expect((await preview({ api_version: null })).body.event_id).toBe(other.id);
    const { body } = await expectStatus(preview({ api_version: '2025-01-01' }), 200);
    expect(body).toEqual({
      event_id: event.id,
      event_type: 'order.created',
      current: { api_version: null, version: '2026-04-01', conversion: null, data: ANN, error: null },
      proposed: {
        api_version: '2025-01-01',
        version: '2025-01-01',
        conversion: expect.objectContaining({ status: 'converted', to: '2025-01-01' }),
        data: ['Ann Lee'],
        error: null,
      },
    });
    const broken = await order(tenant, { data: { ...ANN, broken: true } });
    const { body: failed } = await expectStatus(
      preview({ api_version: '2025-10-01', event_id: broken.id }),
      200,
    );
    expect(failed.proposed).toMatchObject({
      data: null,
      error: { message: expect.stringContaining('BROKEN') },
    });
    const stranger = await order(newTenant());
    await expectStatus(preview({ api_version: null, event_id: stranger.id }), 422);
    expect(
      await database.query(
        'select count(*)::int as n from posthorn.converted_payloads where event_id in (select id from posthorn.events where tenant = $1)',
        [tenant],
      ),
    ).toEqual([{ n: 0 }]);
  });

  test('a key sees the pins of its own tenant, and an admin all of them', async () => {
    const [tenant, other] = [newTenant(), newTenant()];
    const ids: string[] = [];
    for (const api_version of ['2025-10-01', '2026-01-01', '2026-04-01'])
      ids.push((await createEndpoint(posthorn, { url: 'https://example.com/', tenant, api_version })).id);
    await createEndpoint(posthorn, { url: 'https://example.com/', tenant: other, api_version: '2025-10-01' });
    const { key } = (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant })).body;
    const list = async (query: string, options = {}) =>
      (
        await expectStatus(
          posthorn.api('GET', `/v1/event-types/order.created/pins${query}`, undefined, options),
          200,
        )
      ).body;
    const mine = await list('', { key });
    expect(mine.data.map(({ endpoint_id }: { endpoint_id: string }) => endpoint_id)).toEqual(
      ids.toReversed(),
    );
    const old = await list(`?version=2025-10-01&tenant=${tenant}&limit=1`);
    expect(old.data).toMatchObject([
      { endpoint_id: ids[1], api_version: '2026-01-01', version: '2025-10-01' },
    ]);
    const next = await list(`?version=2025-10-01&tenant=${tenant}&limit=1&cursor=${old.next_cursor}`);
    expect(next).toMatchObject({ data: [{ endpoint_id: ids[0] }], next_cursor: null });
    expect((await list('?version=2025-10-01')).data.length).toBeGreaterThan(2);
  });
});

test('VER-2: a pasted payload can be converted to any version', async () => {
  const attempt = async (body: object) =>
    (await expectStatus(posthorn.api('POST', '/v1/event-types/order.created/try', body), 200)).body;
  const given = { data: ANN, from_version: '2026-04-01' };
  expect(await attempt(given)).toMatchObject({ valid: true, converted: null, conversion_error: null });
  expect(await attempt({ ...given, to_version: '2025-01-01' })).toMatchObject({ converted: ['Ann Lee'] });
  expect(await attempt({ ...given, to_version: '2026-04-01' })).toMatchObject({ converted: ANN });
  const broken = await attempt({ data: { broken: true }, to_version: '2025-10-01' });
  expect(broken).toMatchObject({ converted: null, conversion_error: expect.stringContaining('BROKEN') });
  const upwards = await attempt({ data: [], from_version: '2025-01-01', to_version: '2026-04-01' });
  expect(upwards).toMatchObject({
    converted: null,
    conversion_error: expect.stringContaining('No converters'),
  });
  const unknown = { data: 1, to_version: 'v9' };
  await expectStatus(posthorn.api('POST', '/v1/event-types/order.created/try', unknown), 422);
});

describe('VER-2: a failing converter', () => {
  test('fails only its own deliveries, by their schedule, and never counts against the endpoint', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      api_version: '2025-10-01',
      retry: { schedule: [0, 0, 0] },
      breaker: { consecutive: 1 },
    });
    const broken = await order(tenant, { data: { ...ANN, broken: true } });
    const [dead] = await untilDeliveries(posthorn, broken.id, 'dead');
    expect(dead).toMatchObject({ attempts: 3, reason: 'exhausted', last_error: 'conversion_failed' });
    expect(await attemptsOf(posthorn, dead!.id)).toMatchObject(
      [1, 2, 3].map((number) => ({
        number,
        request_headers: {},
        error: {
          class: 'conversion_failed',
          message: expect.stringContaining('2026-04-01→2025-10-01: BROKEN'),
          hint: expect.stringContaining('converter'),
        },
      })),
    );
    const fine = await order(tenant);
    await untilDeliveries(posthorn, fine.id, 'delivered');
    const { body } = await posthorn.api('GET', `/v1/endpoints/${endpoint.id}`);
    expect(body.health).toMatchObject({ circuit: 'closed', consecutive_failures: 0 });
    const ofEndpoint = '(select id from posthorn.endpoints where tenant = $1)';
    const counted = await eventually('the statistics are counted', async () => {
      const [sums] = await database.query(
        `select sum(delivered)::int as delivered, sum(dead)::int as dead, sum(failures)::int as failures
           from posthorn.endpoint_stats where seconds = 60 and endpoint_id = ${ofEndpoint}`,
        [tenant],
      );
      return sums?.delivered === 1 && sums;
    });
    expect(counted).toEqual({ delivered: 1, dead: 1, failures: 0 });
    const [failing] = await database.query(
      `select failing_since from posthorn.endpoint_health where endpoint_id = ${ofEndpoint}`,
      [tenant],
    );
    expect(failing?.failing_since ?? null).toBeNull();
  });

  test('retries reuse the bytes of the first attempt, a replay converts anew, and every request stays readable', async () => {
    const receiver = await newReceiver();
    receiver.answer({ status: 500 });
    const tenant = newTenant();
    await createEndpoint(posthorn, {
      url: receiver.url,
      tenant,
      api_version: '2025-10-01',
      retry: { schedule: [0, 1, 3600] },
      breaker: null,
    });
    const event = await order(tenant);
    await receiver.waitFor(1);
    await posthorn.stop();
    writeConfig(CONFIG.replace("data.first + ' ' + data.last", "data.last + ', ' + data.first"));
    posthorn = await start();
    await receiver.waitFor(2);
    const [delivery] = await eventually('two attempts are recorded', async () => {
      const found = await deliveriesOf(posthorn, event.id);
      return found[0]?.attempts === 2 && found;
    });
    const [first, second] = receiver.requests;
    expect(second!.body.toString()).toBe(first!.body.toString());
    receiver.answer({ status: 200 });
    await expectStatus(posthorn.api('POST', `/v1/deliveries/${delivery!.id}/replay`), 202);
    await untilDeliveries(posthorn, event.id, 'delivered');
    const third = receiver.requests[2]!;
    expect(third.json().data).toMatchObject({ name: 'Lee, Ann' });
    for (const [index, request] of [first, second, third].entries())
      expect((await sentRequest(delivery!.id, index + 1)).text).toBe(request!.body.toString());
    // The payload takes everything that was made of it along.
    await expectStatus(posthorn.api('DELETE', `/v1/events/${event.id}/payload`), 204);
    await expectStatus(sentRequest(delivery!.id, 1), 404);
    const kept = await database.query(
      "select count(*)::int as n from posthorn.converted_payloads where data::text like '%4c6565%' and event_id = (select id from posthorn.events where tenant = $1)",
      [tenant],
    );
    expect(kept).toEqual([{ n: 0 }]);
  });
});

test('VER-2: when a converter was fixed, retries succeed, and a dead letter can be replayed', async () => {
  const receiver = await newReceiver();
  const [retried, replayed] = [newTenant(), newTenant()];
  const pinned = { url: receiver.url, api_version: '2025-10-01' };
  const schedule = [0, ...Array.from({ length: 45 }, () => 2)];
  await createEndpoint(posthorn, { ...pinned, tenant: retried, retry: { schedule } });
  await createEndpoint(posthorn, { ...pinned, tenant: replayed, retry: { schedule: [0] } });
  const data = { ...ANN, broken: true };
  const waiting = await order(retried, { data });
  const lost = await order(replayed, { data });
  const [dead] = await untilDeliveries(posthorn, lost.id, 'dead');
  await eventually('the other one has failed, too', async () => {
    const [delivery] = await deliveriesOf(posthorn, waiting.id);
    return delivery?.last_error === 'conversion_failed';
  });
  expect(receiver.requests).toHaveLength(0);
  await posthorn.stop();
  writeConfig(CONFIG.replace("throw new Error('BROKEN')", "return { name: 'fixed' }"));
  posthorn = await start();
  await untilDeliveries(posthorn, waiting.id, 'delivered');
  await expectStatus(posthorn.api('POST', `/v1/deliveries/${dead!.id}/replay`), 202);
  await untilDeliveries(posthorn, lost.id, 'delivered');
  expect(receiver.requests.map((request) => request.json().data)).toEqual([
    { name: 'fixed' },
    { name: 'fixed' },
  ]);
});

describe('VER-2: sunset', () => {
  test('deliveries of a deprecated version announce it, and go on after its sunset', async () => {
    const type = 'invoice.made';
    const sunset_at = '2020-06-30T00:00:00.000Z';
    await expectStatus(putVersion('v1', { status: 'deprecated', sunset_at }, type), 201);
    await expectStatus(putVersion('v2', {}, type), 201);
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: `${receiver.url}/pinned`, tenant, api_version: 'v1' });
    await createEndpoint(posthorn, { url: `${receiver.url}/plain`, tenant });
    const announced = await eventually('the notice is sent', async () => {
      const { id } = await publish(posthorn, { tenant, type, data: {}, schema_version: 'v1' });
      await untilDeliveries(posthorn, id, 'delivered', { count: 2 });
      const sent = receiver.requests.filter(({ headers }) => headers['webhook-id'] === id);
      return sent.every(({ headers }) => headers.sunset !== undefined) && sent;
    });
    expect(announced).toHaveLength(2);
    for (const { headers } of announced) {
      expect(headers.sunset).toBe('Tue, 30 Jun 2020 00:00:00 GMT');
      expect(headers.deprecation).toMatch(/^@\d{10}$/);
    }
    const { id } = await publish(posthorn, { tenant, type, data: {}, schema_version: 'v2' });
    await untilDeliveries(posthorn, id, 'delivered', { count: 2 });
    const plain = receiver.requests.find(
      ({ path, headers }) => path === '/plain' && headers['webhook-id'] === id,
    )!;
    expect(plain.headers.sunset).toBeUndefined();
  });
});

describe('VER-2: sunset of an event type', () => {
  test('all its deliveries announce the earlier time of type and version, and go on', async () => {
    const type = 'refund.made';
    const putType = (body: object) => posthorn.api('PUT', `/v1/event-types/${type}`, body);
    const sunset_at = '2020-06-30T00:00:00.000Z';
    const { body: stored } = await expectStatus(putType({ deprecated: true, sunset_at }), 201);
    expect(stored).toMatchObject({ deprecated: true, sunset_at });
    const receiver = await newReceiver();
    const tenant = newTenant();
    await createEndpoint(posthorn, { url: receiver.url, tenant });
    const headersOf = async (schema_version?: string) => {
      const { id } = await publish(posthorn, { tenant, type, data: {}, schema_version });
      await untilDeliveries(posthorn, id, 'delivered');
      return receiver.requests.find(({ headers }) => headers['webhook-id'] === id)!.headers;
    };
    const untilSunset = (text: string | undefined, version?: string) =>
      eventually(`the sunset is ${text}`, async () => {
        const headers = await headersOf(version);
        return headers.sunset === text && headers;
      });
    // A type without versions.
    const { deprecation } = await untilSunset('Tue, 30 Jun 2020 00:00:00 GMT');
    expect(deprecation).toMatch(/^@\d{10}$/);

    // A version that ends earlier, and one that ends later.
    const versionWith = (year: number) => ({ sunset_at: `${year}-01-01T00:00:00.000Z` });
    await expectStatus(putVersion('v1', versionWith(2019), type), 201);
    await expectStatus(putVersion('v2', versionWith(2021), type), 201);
    await untilSunset('Tue, 01 Jan 2019 00:00:00 GMT', 'v1');
    expect(await untilSunset('Tue, 30 Jun 2020 00:00:00 GMT', 'v2')).toMatchObject({ deprecation });

    // A change keeps the time of the deprecation. Without one, only the sunset of the version is left.
    await expectStatus(putType({ deprecated: true }), 200);
    expect(await untilSunset('Fri, 01 Jan 2021 00:00:00 GMT', 'v2')).toMatchObject({ deprecation });
    await expectStatus(putType({}), 200);
    await eventually('it is not deprecated', async () => (await headersOf('v2')).deprecation === undefined);
    await expectStatus(putType({ sunset_at: 'soon' }), 422);
  });

  test('the endpoints that subscribe to it are listed, also those with a pattern', async () => {
    const tenant = newTenant();
    const create = async (events?: string[]) =>
      (await createEndpoint(posthorn, { url: 'https://example.com/', tenant, ...(events && { events }) })).id;
    const subscribed = [
      await create(),
      await create(['refund.made']),
      await create(['other', 'refund.*']),
      await create(['*']),
    ];
    await create(['refund.madeup']);
    await create(['refund.made.*', 'refund']);
    const list = async (type: string) =>
      (
        await expectStatus(posthorn.api('GET', `/v1/endpoints?tenant=${tenant}&event_type=${type}`), 200)
      ).body.data.map(({ id }: { id: string }) => id);
    expect(await list('refund.made')).toEqual(subscribed.toReversed());
    expect(await list('posthorn.endpoint.disabled')).toEqual([]);
    await expectStatus(posthorn.api('GET', '/v1/endpoints?event_type=refund.*'), 422);
  });
});

describe('VER-2: a configuration that cannot be used', () => {
  test('stops the start with a message that names the file and the reason', async () => {
    const file = path.join(folder, 'bad.config.ts');
    writeFileSync(file, "export default { converters: { a: { '2→1': 'no function' } } };");
    await expect(startTestPosthorn({ database, env: { POSTHORN_CONFIG: file } })).rejects.toThrow(
      /bad\.config\.ts cannot be used: converters\['a'\]\['2→1'\] must be a function/,
    );
  });
});
