/** Settings that are valid but probably a mistake cause a warning. Limits apply to new endpoints only. */
import { describe, expect, test } from 'vitest';
import {
  createEndpoint,
  expectStatus,
  newTenant,
  publish,
  startTestPosthorn,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
const URL_OF_NOBODY = 'https://example.com/';

interface Warned {
  readonly id: string;
  readonly warnings: readonly { readonly path: string; readonly message: string }[];
}
const create = async (settings: object, api = posthorn.api): Promise<Warned> =>
  (await expectStatus(api('POST', '/v1/endpoints', { url: URL_OF_NOBODY, ...settings }), 201)).body;
const patch = async (id: string, settings: object): Promise<Warned> =>
  (await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, settings), 200)).body;

test('without a catalogue, a type that the tenant does not publish is warned about, once it publishes', async () => {
  const tenant = newTenant();
  const events = ['order.created', 'order.*', '*', 'posthorn.*', 'ord', 'orde.*'];
  expect((await create({ tenant, events })).warnings).toEqual([]);
  await publish(posthorn, { tenant, type: 'order.created', data: 1 });
  const { warnings } = await create({ tenant, url: `${URL_OF_NOBODY}2`, events });
  expect(warnings).toMatchObject([
    { path: 'events[4]', message: '"ord" matches none of the tenant\'s newest 1,000 events' },
    { path: 'events[5]' },
  ]);
  // Another tenant has published nothing yet.
  expect((await create({ tenant: newTenant(), events })).warnings).toEqual([]);
});

test('a type that the catalogue does not have is warned about, once the catalogue has any', async () => {
  const tenant = newTenant();
  const first = await create({ tenant, events: ['ord'] });
  expect(first.warnings).toEqual([]);

  await expectStatus(posthorn.api('PUT', '/v1/event-types/order.created', {}), 201);
  const known = ['*', 'order.created', 'order.*', 'posthorn.circuit.opened', 'posthorn.*'];
  expect((await create({ tenant: newTenant(), events: known })).warnings).toEqual([]);
  const typos = await create({ tenant: newTenant(), events: ['order.*', 'ord', 'order.creatd', 'ord.*'] });
  expect(typos.warnings).toMatchObject([{ path: 'events[1]' }, { path: 'events[2]' }, { path: 'events[3]' }]);
  expect(typos.warnings[0]!.message).toContain('"ord"');

  expect((await patch(first.id, { description: 'x' })).warnings).toMatchObject([{ path: 'events[0]' }]);
  expect((await patch(first.id, { events: ['order.*'] })).warnings).toEqual([]);
  // Only the answer to a change has warnings, not the endpoint itself.
  expect((await posthorn.api('GET', `/v1/endpoints/${first.id}`)).body).not.toHaveProperty('warnings');
});

test('a filter operator without its $ is warned about', async () => {
  const filter = { 'data.amount': { gte: 100 }, $or: [{ 'data.a': { $not: { in: 1 } } }, { 'data.gte': 1 }] };
  const { warnings } = await create({ tenant: newTenant(), filter });
  // The database does not keep the order of fields.
  expect(warnings.toSorted((a, b) => a.path.localeCompare(b.path))).toMatchObject([
    { path: 'filter.$or[0].data.a.$not.in' },
    { path: 'filter.data.amount.gte', message: expect.stringContaining('"$gte"') },
  ]);
  const right = { 'data.amount': { $gte: 100 }, 'data.in': 1, data: { order: { id: 1 } } };
  expect((await create({ tenant: newTenant(), filter: right })).warnings).toEqual([]);
});

describe('a second endpoint with the same tenant, URL and overlapping events', () => {
  const overlapping: [object, object][] = [
    [{}, { events: ['order.paid'] }],
    [{ events: ['order.*'] }, { events: ['order.item.*', 'x'] }],
    [{ events: ['a', 'order.paid'] }, { events: ['order.*'] }],
    [{ channels: ['eu', 'us'] }, { channels: ['us'] }],
    [{ channels: ['eu'] }, {}],
  ];
  const apart: [object, object][] = [
    [{ events: ['order.paid'] }, { events: ['order.created'] }],
    [{ events: ['order.*'] }, { events: ['orders.*', 'order'] }],
    [{}, { events: ['posthorn.*'] }],
    [{ channels: ['eu'] }, { channels: ['us'] }],
    [{}, { url: 'https://example.com/other' }],
  ];

  const urlWarnings = ({ warnings }: Warned) => warnings.filter(({ path }) => path === 'url');

  test('is created with a warning that names the first', async () => {
    for (const [one, other] of overlapping) {
      const tenant = newTenant();
      const first = await create({ tenant, ...one });
      const second = await create({ tenant, ...other });
      expect(urlWarnings(second)).toMatchObject([{ message: expect.stringContaining(first.id) }]);
    }
    for (const [one, other] of apart) {
      const tenant = newTenant();
      await create({ tenant, ...one });
      expect(urlWarnings(await create({ tenant, ...other }))).toEqual([]);
    }
    await create({ tenant: newTenant() });
    expect(urlWarnings(await create({ tenant: newTenant() })), 'other tenants do not count').toEqual([]);
  });

  test('is refused with POSTHORN_UNIQUE_ENDPOINTS=on, also if both come at once', async () => {
    const { database } = posthorn;
    const env = { POSTHORN_UNIQUE_ENDPOINTS: 'on' };
    const unique = await startTestPosthorn({ database, env, inProcess: true });
    try {
      for (const [one, other] of overlapping) {
        const tenant = newTenant();
        const first = await create({ tenant, ...one }, unique.api);
        const body = { url: URL_OF_NOBODY, tenant, ...other };
        const refused = await expectStatus(unique.api('POST', '/v1/endpoints', body), 409);
        expect(refused.body).toMatchObject({ code: 'endpoint_exists', errors: [{ path: 'url' }] });
        expect(refused.body.detail).toContain(first.id);
      }
      for (const [one, other] of apart) {
        const tenant = newTenant();
        await create({ tenant, ...one }, unique.api);
        const { id } = await create({ tenant, ...other }, unique.api);
        const same = { url: URL_OF_NOBODY, events: null, channels: null, ...one };
        const changed = await expectStatus(unique.api('PATCH', `/v1/endpoints/${id}`, same), 409);
        expect(changed.body.code).toBe('endpoint_exists');
        await expectStatus(unique.api('PATCH', `/v1/endpoints/${id}`, { description: 'x' }), 200);
      }
      const body = { url: URL_OF_NOBODY, tenant: newTenant() };
      const answers = await Promise.all([1, 2, 3].map(() => unique.api('POST', '/v1/endpoints', body)));
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    } finally {
      await unique.stop();
    }
  });
});

describe('the number of endpoints of a tenant is limited', () => {
  const body = (tenant: string) => ({ url: URL_OF_NOBODY, tenant });

  test('by max_endpoints of the tenant: existing ones stay and can be changed, new ones are 422', async () => {
    const tenant = newTenant();
    const first = await createEndpoint(posthorn, body(tenant));
    await createEndpoint(posthorn, body(tenant));
    const put = await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { max_endpoints: 1 }), 200);
    expect(put.body.max_endpoints).toBe(1);
    const refused = await expectStatus(posthorn.api('POST', '/v1/endpoints', body(tenant)), 422);
    expect(refused.body).toMatchObject({ code: 'invalid', errors: [{ path: 'tenant' }] });
    expect((await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`)).body.data).toHaveLength(2);
    await patch(first.id, { paused: true });

    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { max_endpoints: 2 }), 200);
    await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${first.id}`), 204);
    const many = await Promise.all([1, 2, 3].map(() => posthorn.api('POST', '/v1/endpoints', body(tenant))));
    expect(many.map(({ status }) => status).sort()).toEqual([201, 422, 422]);
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, {}), 200);
    await createEndpoint(posthorn, body(tenant));
  });

  test('by POSTHORN_MAX_ENDPOINTS_PER_TENANT, unless the tenant has its own limit', async () => {
    const { database } = posthorn;
    const env = { POSTHORN_MAX_ENDPOINTS_PER_TENANT: '1' };
    const limited = await startTestPosthorn({ database, env, inProcess: true });
    try {
      const tenant = newTenant();
      await createEndpoint(limited, body(tenant));
      await expectStatus(limited.api('POST', '/v1/endpoints', body(tenant)), 422);
      await expectStatus(limited.api('PUT', `/v1/tenants/${tenant}`, { max_endpoints: 2 }), 200);
      await createEndpoint(limited, body(tenant));
    } finally {
      await limited.stop();
    }
  });
});
