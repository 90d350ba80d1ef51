import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  usePosthorns,
} from '../support/posthorn.ts';

const [posthorn, other] = usePosthorns({}, { args: ['--role', 'api'] });

const newKey = async (settings: object): Promise<{ id: string; key: string }> =>
  (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body;

async function everyPage(path: string): Promise<{ id?: string; name?: string }[]> {
  const found = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = cursor === '' ? '' : `&cursor=${cursor}`;
    const { body } = await expectStatus(posthorn.api('GET', `${path}?limit=2${query}`), 200);
    expect(body.data.length).toBeLessThanOrEqual(2);
    found.push(...body.data);
    cursor = body.next_cursor;
  }
  return found;
}

describe('tenants', () => {
  test('can be created, read, replaced and deleted', async () => {
    const tenant = newTenant();
    const settings = {
      name: 'Acme',
      description: 'A customer',
      metadata: { plan: 'gold' },
      ingest_rate_limit: { per_second: 5, burst: 10 },
      max_endpoints: 100,
    };
    const { body: created } = await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, settings), 201);
    expect(created).toEqual({
      id: tenant,
      retention_days: null,
      validation: 'off',
      api_version: null,
      ...settings,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await posthorn.api('GET', `/v1/tenants/${tenant}`)).body).toEqual(created);

    // Fields that are left out get their defaults.
    const { body: replaced } = await expectStatus(
      posthorn.api('PUT', `/v1/tenants/${tenant}`, { name: 'Acme Ltd' }),
      200,
    );
    expect(replaced).toMatchObject({
      name: 'Acme Ltd',
      description: '',
      metadata: {},
      ingest_rate_limit: null,
      max_endpoints: null,
      created_at: created.created_at,
    });
    await expectStatus(posthorn.api('DELETE', `/v1/tenants/${tenant}`), 204);
    await expectStatus(posthorn.api('GET', `/v1/tenants/${tenant}`), 404);
    await expectStatus(posthorn.api('DELETE', `/v1/tenants/${tenant}`), 404);
  });

  test('are created with their first endpoint, key or event', async () => {
    const receiver = await newReceiver();
    const [byEndpoint, byKey, byEvent, byOther] = [newTenant(), newTenant(), newTenant(), newTenant()];
    await createEndpoint(posthorn, { tenant: byEndpoint, url: receiver.url });
    await newKey({ scope: 'tenant', tenant: byKey });
    await publish(posthorn, { tenant: byEvent, type: 'a.b', data: 1 });
    await publish(other, { tenant: byOther, type: 'a.b', data: 1 });
    for (const tenant of [byEndpoint, byKey, byEvent, byOther]) {
      const { body } = await expectStatus(posthorn.api('GET', `/v1/tenants/${tenant}`), 200);
      expect(body).toMatchObject({ id: tenant, name: '', ingest_rate_limit: null });
    }
    // A deleted tenant exists again when it is used, also by a process that has cached it.
    await expectStatus(posthorn.api('DELETE', `/v1/tenants/${byOther}`), 204);
    await eventually('it is there again', async () => {
      await publish(other, { tenant: byOther, type: 'a.b', data: 1 });
      return (await posthorn.api('GET', `/v1/tenants/${byOther}`)).status === 200;
    });
  });

  test('cannot be deleted while they have endpoints or keys', async () => {
    const receiver = await newReceiver();
    const tenant = newTenant();
    const endpoint = await createEndpoint(posthorn, { tenant, url: receiver.url });
    const key = await newKey({ scope: 'read', tenant });
    const refused = async (what: string) => {
      const { body } = await expectStatus(posthorn.api('DELETE', `/v1/tenants/${tenant}`), 409);
      expect(body).toMatchObject({ code: 'conflict', detail: expect.stringContaining(`still has ${what}.`) });
    };
    await refused('endpoints and keys');
    await expectStatus(posthorn.api('DELETE', `/v1/endpoints/${endpoint.id}`), 204);
    await refused('keys');
    await expectStatus(posthorn.api('DELETE', `/v1/keys/${key.id}`), 204);
    await expectStatus(posthorn.api('DELETE', `/v1/tenants/${tenant}`), 204);
  });

  test('are visible to their own keys, and only admin keys can change them', async () => {
    const [mine, theirs] = [newTenant(), newTenant()];
    const { key } = await newKey({ scope: 'tenant', tenant: mine });
    const { key: reader } = await newKey({ scope: 'read' });
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${theirs}`, {}), 201);
    await expectStatus(posthorn.api('GET', `/v1/tenants/${mine}`, undefined, { key }), 200);
    await expectStatus(posthorn.api('GET', `/v1/tenants/${theirs}`, undefined, { key }), 404);
    await expectStatus(posthorn.api('GET', '/v1/tenants', undefined, { key }), 403);
    await expectStatus(posthorn.api('GET', '/v1/tenants', undefined, { key: reader }), 200);
    for (const caller of [key, reader]) {
      await expectStatus(posthorn.api('PUT', `/v1/tenants/${mine}`, {}, { key: caller }), 403);
      await expectStatus(posthorn.api('DELETE', `/v1/tenants/${mine}`, undefined, { key: caller }), 403);
    }
  });

  test.each([
    ['bad%20name', {}, 'id'],
    ['acme', { name: 7 }, 'name'],
    ['acme', { colour: 'red' }, 'colour'],
    ['acme', { metadata: { big: 'x'.repeat(17_000) } }, 'metadata'],
    ['acme', { ingest_rate_limit: { per_second: 0 } }, 'ingest_rate_limit.per_second'],
  ])('refuses an invalid name: %s', async (name, body, path) => {
    const answer = await expectStatus(posthorn.api('PUT', `/v1/tenants/${name}`, body), 422);
    expect(answer.body.errors).toMatchObject([{ path }]);
  });

  test('are listed newest first, in pages', async () => {
    const made = [newTenant(), newTenant(), newTenant()];
    // One statement creates all three at the same time, so they are sorted by name.
    const events = made.map((tenant) => ({ tenant, type: 'a.b', data: 1 }));
    await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    const listed = (await everyPage('/v1/tenants')).map(({ id }) => id!);
    expect(new Set(listed).size).toBe(listed.length);
    expect(listed.slice(0, 3).toSorted()).toEqual(made.toSorted());
    await expectStatus(posthorn.api('GET', '/v1/tenants?cursor=ep_x'), 400);
  });

  test('ACC-8: the rate limit of a tenant and its changes apply in every process', async () => {
    const tenant = newTenant();
    const limit = { per_second: 0.01, burst: 2 };
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { ingest_rate_limit: limit }), 201);
    for (const process of [posthorn, other]) {
      const refused = await eventually('the limit is known', async () => {
        const answer = await process.api('POST', '/v1/events', { tenant, type: 'a.b', data: 1 });
        return answer.status === 429 && answer;
      });
      expect(refused.body.code).toBe('rate_limited');
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50);
      // Other tenants are not limited.
      await publish(process, { tenant: newTenant(), type: 'a.b', data: 1 });
    }
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, {}), 200);
    for (const process of [posthorn, other]) {
      await eventually(
        'the limit is lifted',
        async () =>
          (await process.api('POST', '/v1/events', { tenant, type: 'a.b', data: 1 })).status === 202,
      );
    }
  });
});

describe('VER-1: the catalogue of event types', () => {
  const schema = {
    type: 'object',
    required: ['id'],
    properties: {
      id: { type: 'string', pattern: '^ord_' },
      lines: { type: 'array', items: { type: 'integer' } },
    },
    additionalProperties: false,
  };

  test('event types can be created, read by every key, replaced and deleted', async () => {
    const settings = {
      description: 'An order',
      schema,
      example: { id: 'ord_1', lines: [1] },
      deprecated: false,
      sunset_at: '2027-06-30T00:00:00.000Z',
    };
    const { body: created } = await expectStatus(
      posthorn.api('PUT', '/v1/event-types/order.created', settings),
      201,
    );
    expect(created).toEqual({
      name: 'order.created',
      ...settings,
      validation: null,
      latest_version: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const { key } = await newKey({ scope: 'tenant', tenant: newTenant() });
    const path = '/v1/event-types/order.created';
    expect((await posthorn.api('GET', path, undefined, { key })).body).toEqual(created);
    expect((await posthorn.api('GET', '/v1/event-types', undefined, { key })).body.data).toContainEqual(
      created,
    );
    await expectStatus(posthorn.api('PUT', path, {}, { key }), 403);
    await expectStatus(posthorn.api('DELETE', path, undefined, { key }), 403);

    // In the order in which it was written.
    expect(JSON.stringify(created.schema)).toBe(JSON.stringify(schema));

    const { body: replaced } = await expectStatus(posthorn.api('PUT', path, { deprecated: true }), 200);
    expect(replaced).toMatchObject({
      description: '',
      schema: null,
      example: null,
      deprecated: true,
      sunset_at: null,
    });
    await expectStatus(posthorn.api('DELETE', path), 204);
    await expectStatus(posthorn.api('GET', path), 404);
    await expectStatus(posthorn.api('DELETE', path), 404);
  });

  test.each([
    ['no-dots.', {}, 'name'],
    [`a.${'b'.repeat(127)}`, {}, 'name'],
    ['posthorn.mine', {}, 'name'],
    ['__proto__', {}, 'name'],
    ['a.b', { schema: { type: 'strin' } }, 'schema.type'],
    ['a.b', { schema: { properties: { a: { minLength: -1 } } } }, 'schema.properties.a.minLength'],
    ['a.b', { schema: { properties: { a: { pattern: '(' } } } }, 'schema.properties.a.pattern'],
    ['a.b', { schema: { patternProperties: { '(': true } } }, 'schema.patternProperties.('],
    ['a.b', { schema: { $ref: '#/$defs/none' } }, 'schema.$ref'],
    ['a.b', { schema: { $ref: '#/%' } }, 'schema.$ref'],
    ['a.b', { schema: { $ref: 'http://169.254.169.254/schema' } }, 'schema.$ref'],
    ['a.b', { schema: { $schema: 'http://json-schema.org/draft-04/schema#' } }, 'schema.$schema'],
    ['a.b', { schema: { $ref: '#' }, example: 1 }, 'schema'],
    ['a.b', { schema: { title: 'x'.repeat(70_000) } }, 'schema'],
    ['a.b', { schema: 'string' }, 'schema'],
    ['a.b', { example: 'x'.repeat(70_000) }, 'example'],
    ['a.b', { schema, example: { id: 'nope' } }, 'example.id'],
    ['a.b', { schema, example: { id: 'ord_1', lines: [1, 'x'] } }, 'example.lines[1]'],
    ['a.b', { schema, example: { id: 'ord_1', other: 1 } }, 'example.other'],
    ['a.b', { schema, example: {} }, 'example.id'],
    ['a.b', { colour: 'red' }, 'colour'],
  ])('refuses invalid settings: %s %j', async (name, body, path) => {
    const answer = await expectStatus(posthorn.api('PUT', `/v1/event-types/${name}`, body), 422);
    expect(answer.body.errors[0]).toMatchObject({ path });
    expect(answer.body.code).toBe('invalid');
  });

  test.each([
    ['2020-12', {}],
    ['draft-07', { $schema: 'http://json-schema.org/draft-07/schema#' }],
  ])('reports each error of a type once (%s)', async (_draft, rest) => {
    const body = { schema: { ...rest, properties: { a: { type: 'objekt' } } } };
    const answer = await expectStatus(posthorn.api('PUT', '/v1/event-types/a.b', body), 422);
    expect(answer.body.errors).toEqual([
      {
        path: 'schema.properties.a.type',
        message: 'must be one of "array", "boolean", "integer", "null", "number", "object", "string"',
      },
    ]);
  });

  test.each([
    [{ schema: true, example: 7 }],
    [
      {
        schema: {
          $schema: 'http://json-schema.org/draft-07/schema#',
          definitions: { a: true },
          $ref: '#/definitions/a',
        },
      },
    ],
    [
      {
        schema: {
          $defs: { tree: { properties: { child: { $ref: '#/$defs/tree' } } } },
          $ref: '#/$defs/tree',
        },
        example: { child: {} },
      },
    ],
    // Fields with the names of keywords.
    [
      {
        schema: { properties: { pattern: { type: 'string' }, $ref: { type: 'string' } } },
        example: { pattern: '(' },
      },
    ],
  ])('accepts %j', async (body) => {
    const answer = await posthorn.api('PUT', '/v1/event-types/taken', body);
    expect(answer.status, answer.text).toBeLessThan(300);
  });

  test('event types are listed newest first, in pages', async () => {
    for (const name of ['list.a', 'list.b', 'list.c'])
      await expectStatus(posthorn.api('PUT', `/v1/event-types/${name}`, {}), 201);
    const names = (await everyPage('/v1/event-types')).map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(['list.c', 'list.b', 'list.a']);
    expect(new Set(names).size).toBe(names.length);
  });

  test('publishing does not check payloads unless the type or the tenant has a mode', async () => {
    const tenant = newTenant();
    await expectStatus(posthorn.api('PUT', '/v1/event-types/strict.type', { schema: false }), 201);
    await publish(posthorn, { tenant, type: 'strict.type', data: { any: 'thing' } });
    await publish(posthorn, { tenant, type: 'not.in.it', data: 1 });
  });
});
