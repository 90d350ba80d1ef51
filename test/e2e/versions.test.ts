import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { firstIdAt } from '../../src/domain/ids.ts';
import {
  deleteOldSchemaFailures,
  deleteSurplusSchemaFailures,
} from '../../src/postgres/queries/schema-failures.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import {
  ADMIN_KEY,
  createEndpoint,
  expectStatus,
  MAIN,
  newReceiver,
  newTenant,
  startTestPosthorn,
  TEST_SETTINGS,
  type TestPosthorn,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

let database: TestDatabase;
let posthorn: TestPosthorn;
beforeAll(async () => {
  database = await createTestDatabase();
  posthorn = await startTestPosthorn({ database });
});
afterAll(async () => {
  await posthorn?.stop();
  await database?.drop();
});

let count = 0;
const newType = (): string => `type${++count}.made`;
const put = (type: string, version: string, body: object) =>
  posthorn.api('PUT', `/v1/event-types/${type}/versions/${version}`, body);
const objectOf = (properties: object, required: string[] = []) => ({ type: 'object', required, properties });

describe('VER-1: versions of event types', () => {
  test('a version can be created, read and replaced, and creates its type', async () => {
    const type = newType();
    const settings = {
      description: 'An order was placed.',
      changelog: 'The first one.',
      schema: objectOf({ id: { type: 'string' } }, ['id']),
      example: { id: 'ord_1' },
      status: 'active',
      sunset_at: '2027-06-30T00:00:00.000Z',
    };
    const { body: created } = await expectStatus(put(type, '2026-04-01', settings), 201);
    expect(created).toMatchObject({ event_type: type, version: '2026-04-01', ...settings, latest: true });
    const path = `/v1/event-types/${type}/versions/2026-04-01`;
    const { body: shown } = await expectStatus(posthorn.api('GET', path), 200);
    expect(created).toMatchObject(shown);
    await expectStatus(posthorn.api('GET', `/v1/event-types/${type}`), 200);

    // What was read can be sent back, and nothing changes.
    expect((await expectStatus(put(type, '2026-04-01', shown), 200)).body).toMatchObject(shown);
    const { body: replaced } = await expectStatus(
      put(type, '2026-04-01', { schema: settings.schema, status: 'deprecated' }),
      200,
    );
    expect(replaced).toMatchObject({ description: '', status: 'deprecated', sunset_at: null, latest: true });
    await expectStatus(posthorn.api('DELETE', `/v1/event-types/${type}`), 204);
    await expectStatus(posthorn.api('GET', path), 404);
  });

  test('versions are listed newest first, and the latest is the newest active one, or else the newest deprecated one', async () => {
    const type = newType();
    for (const version of ['v2', '2026-04-01', 'v1']) await expectStatus(put(type, version, {}), 201);
    await expectStatus(put(type, 'v3', { status: 'draft' }), 201);
    const list = async () =>
      (await expectStatus(posthorn.api('GET', `/v1/event-types/${type}/versions`), 200)).body;
    const { data, latest, next_cursor } = await list();
    expect(data.map(({ version }: { version: string }) => version)).toEqual(['v3', 'v1', '2026-04-01', 'v2']);
    expect([latest, next_cursor]).toEqual(['v1', null]);
    const shown = async () => (await posthorn.api('GET', `/v1/event-types/${type}`)).body.latest_version;
    expect(await shown()).toBe('v1');
    await expectStatus(put(type, 'v3', { status: 'active' }), 200);
    expect((await list()).latest).toBe('v3');
    expect(await shown()).toBe('v3');
    // If none is active, the newest one that is still in use.
    for (const version of ['v2', '2026-04-01', 'v1'])
      await expectStatus(put(type, version, { status: 'deprecated' }), 200);
    await expectStatus(put(type, 'v3', { status: 'retired' }), 200);
    expect([(await list()).latest, await shown()]).toEqual(['v1', 'v1']);
    await expectStatus(posthorn.api('GET', '/v1/event-types/not.there/versions'), 404);
    await expectStatus(posthorn.api('GET', `/v1/event-types/${type}/versions/v9`), 404);
  });

  test('only admin keys write versions, and every key reads them', async () => {
    const type = newType();
    const { key } = (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() })).body;
    await expectStatus(put(type, 'v1', {}), 201);
    const path = `/v1/event-types/${type}/versions/v1`;
    await expectStatus(posthorn.api('GET', path, undefined, { key }), 200);
    await expectStatus(posthorn.api('PUT', path, {}, { key }), 403);
  });

  test.each([
    ['yesterday', {}, 'version'],
    ['2026-02-30', {}, 'version'],
    ['v1', { status: 'gone' }, 'status'],
    ['v1', { sunset_at: 'soon' }, 'sunset_at'],
    ['v1', { schema: { type: 'strin' } }, 'schema.type'],
    ['v1', { schema: { type: 'string' }, example: 7 }, 'example'],
    ['v1', { colour: 'red' }, 'colour'],
  ])('refuses invalid settings: %s %j', async (version, body, path) => {
    const answer = await expectStatus(put('refused.type', version, body), 422);
    expect(answer.body.errors[0]).toMatchObject({ path });
    await expectStatus(posthorn.api('GET', '/v1/event-types/refused.type'), 404);
  });
});

const schema = objectOf({ id: { type: 'string' }, amount: { type: 'integer', minimum: 0 } }, ['id']);
const send = (event: object, to = posthorn) => to.api('POST', '/v1/events', event);
const getEvent = async (id: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/events/${id}`), 200)).body;
const putTenant = (tenant: string, settings: object) =>
  posthorn.api('PUT', `/v1/tenants/${tenant}`, settings);

describe('VER-1: payloads are checked when they are accepted', () => {
  test('strict: an invalid payload is 422 with the failing path and the version, and nothing is stored', async () => {
    const [type, tenant] = [newType(), newTenant()];
    await expectStatus(put(type, '2026-04-01', { schema }), 201);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { validation: 'strict' }), 200);
    const refused = await expectStatus(send({ type, tenant, data: { id: 'a', amount: -1 } }), 422);
    expect(refused.body).toMatchObject({
      code: 'payload_invalid',
      detail: expect.stringContaining(`${type}, version 2026-04-01`),
      errors: [{ path: 'data.amount', message: 'must be >= 0' }],
    });
    const { body: accepted } = await expectStatus(send({ type, tenant, data: { id: 'a' } }), 202);
    expect(await getEvent(accepted.id)).toMatchObject({ schema_version: '2026-04-01', schema_errors: [] });
    const { body: events } = await posthorn.api('GET', `/v1/events?tenant=${tenant}`);
    expect(events.data).toHaveLength(1);

    // In a batch each event is checked on its own.
    const events2 = [{}, { id: 'b' }].map((data) => ({ type, tenant, data }));
    const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events: events2 }), 202);
    expect(body.results).toMatchObject([{ error: { code: 'payload_invalid' } }, { type }]);
  });

  test('an event is checked against the version that it names', async () => {
    const [type, tenant] = [newType(), newTenant()];
    await expectStatus(put(type, 'v1', { schema: objectOf({}, ['old']) }), 201);
    await expectStatus(put(type, 'v2', { schema: objectOf({}, ['new']) }), 201);
    await expectStatus(put(type, 'v3', { schema: true, status: 'draft' }), 201);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { validation: 'strict' }), 200);
    const data = { old: 1 };
    await expectStatus(send({ type, tenant, data, schema_version: 'v1' }), 202);
    const latest = await expectStatus(send({ type, tenant, data }), 422);
    expect(latest.body.errors).toEqual([{ path: 'data.new', message: 'is required' }]);
    for (const schema_version of ['v3', 'v9']) {
      const unknown = await expectStatus(send({ type, tenant, data, schema_version }), 422);
      expect(unknown.body.errors).toMatchObject([{ path: 'schema_version' }]);
    }
  });

  test('the events of a batch keep their order, whether they are checked or not', async () => {
    const [checked, other, tenant] = [newType(), newType(), newTenant()];
    await expectStatus(put(checked, 'v1', { schema }), 201);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${checked}`, { validation: 'strict' }), 200);
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { tenant, url: receiver.url, ordering: 'fifo' });
    const events = Array.from({ length: 30 }, (_, n) => ({
      type: n % 3 === 1 ? other : checked,
      tenant,
      // Every tenth is refused.
      data: { id: n % 10 === 9 ? n : `${n}` },
    }));
    const { body } = await expectStatus(posthorn.api('POST', '/v1/events/batch', { events }), 202);
    const accepted = events.filter((_, n) => body.results[n].error === undefined);
    expect(accepted).toHaveLength(28);
    const requests = await receiver.waitFor(28);
    expect(requests.map((request) => request.json().data)).toEqual(accepted.map(({ data }) => data));
  });

  test('deprecating the only version does not end the check of events that name none', async () => {
    const [type, tenant] = [newType(), newTenant()];
    await expectStatus(put(type, 'v1', { schema }), 201);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { validation: 'strict' }), 200);
    await expectStatus(put(type, 'v1', { schema, status: 'deprecated' }), 200);
    const refused = await expectStatus(send({ type, tenant, data: {} }), 422);
    expect(refused.body.detail).toContain(`${type}, version v1`);
    const { body: accepted } = await expectStatus(send({ type, tenant, data: { id: 'a' } }), 202);
    expect(await getEvent(accepted.id)).toMatchObject({ schema_version: 'v1', schema_errors: [] });
  });

  test('warn: an invalid payload is stored, delivered, flagged, counted and listed', async () => {
    const [type, tenant] = [newType(), newTenant()];
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { tenant, url: receiver.url });
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { schema, validation: 'warn' }), 201);
    const { body: accepted } = await expectStatus(send({ type, tenant, data: { amount: 1 } }), 202);
    const schema_errors = [{ path: 'data.id', message: 'is required' }];
    expect(await getEvent(accepted.id)).toMatchObject({ schema_version: null, schema_errors });
    await receiver.waitFor(1);
    const failures = await eventually('the failure is listed', async () => {
      const { body } = await posthorn.api('GET', `/v1/event-types/${type}/failures`);
      return body.data.length > 0 && body;
    });
    expect(failures).toMatchObject({
      data: [
        {
          tenant,
          event_type: type,
          version: null,
          result: 'flagged',
          event_id: accepted.id,
          ...schema_errors[0],
        },
      ],
      next_cursor: null,
    });
    const { text } = await posthorn.api('GET', '/metrics');
    expect(text).toContain(`posthorn_schema_failures_total{event_type="${type}",result="flagged"} 1`);
    // Other tenants do not see it.
    const { key } = (await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant: newTenant() })).body;
    const { body } = await posthorn.api('GET', `/v1/event-types/${type}/failures`, undefined, { key });
    expect(body.data).toEqual([]);
  });

  test('of the recorded failures of a tenant and type the newest are kept', async () => {
    const tenants = [newTenant(), newTenant()];
    for (const [n, tenant] of tenants.entries())
      await database.query(
        `insert into posthorn.schema_failures (id, tenant, event_type, path, message)
         select ('00000000-0000-7000-800' || $1::text || '-' || lpad(n::text, 12, '0'))::uuid, $2, 'kept.t' || n % 3, 'data', 'is bad'
           from generate_series(1, 30) n`,
        [n, tenant],
      );
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    onTestFinished(() => pool.end());
    const kept = async () =>
      (
        await database.query<{ n: number }>(
          `select right(id::text, 2)::int as n from posthorn.schema_failures where tenant = any ($1) order by tenant, id`,
          [tenants],
        )
      ).map(({ n }) => n);
    const trim = (perTenant: number, perTenantAndType: number, max: number) =>
      deleteSurplusSchemaFailures(pool, { perTenant, perTenantAndType }, max);
    expect(await trim(1_000, 1_000, 100)).toBe(0);
    expect(await trim(1_000, 2, 10)).toBe(10);
    await trim(1_000, 2, 100);
    expect(await kept()).toEqual([25, 26, 27, 28, 29, 30, 25, 26, 27, 28, 29, 30]);
    await trim(4, 1_000, 100);
    expect(await kept()).toEqual([27, 28, 29, 30, 27, 28, 29, 30]);
    expect(await deleteOldSchemaFailures(pool, firstIdAt(1_000), 3)).toBe(3);
    await deleteOldSchemaFailures(pool, firstIdAt(1_000), 100);
    expect(await kept()).toEqual([]);
  });

  test('the mode of a tenant holds for types without their own, and for types that the catalogue does not have', async () => {
    const [type, relaxed, tenant] = [newType(), newType(), newTenant()];
    await expectStatus(put(type, 'v1', { schema }), 201);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${relaxed}`, { schema, validation: 'off' }), 201);
    await expectStatus(putTenant(tenant, { validation: 'strict', api_version: 'v1' }), 201);
    await expectStatus(send({ type, tenant, data: {} }), 422);
    await expectStatus(send({ type: relaxed, tenant, data: {} }), 202);
    const unknown = await expectStatus(send({ type: 'not.there', tenant, data: {} }), 422);
    expect(unknown.body.errors).toEqual([{ path: 'type', message: 'is not in the catalogue' }]);
    await expectStatus(send({ type, tenant: newTenant(), data: {} }), 202);

    await expectStatus(putTenant(tenant, { validation: 'warn' }), 200);
    const { body } = await expectStatus(send({ type: 'not.there', tenant, data: {} }), 202);
    expect(await getEvent(body.id)).toMatchObject({ schema_errors: unknown.body.errors });
    await expectStatus(putTenant(tenant, { validation: 'always' }), 422);
    await expectStatus(putTenant(tenant, { api_version: 'newest' }), 422);
  });

  test('events of the outbox are never refused, but flagged', async () => {
    const [type, tenant] = [newType(), newTenant()];
    await expectStatus(put(type, 'v1', { schema }), 201);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { validation: 'strict' }), 200);
    await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { validation: 'strict' }), 201);
    const receiver = await newReceiver();
    await createEndpoint(posthorn, { tenant, url: receiver.url });
    for (const each of [type, 'not.there'])
      await database.query('select posthorn.publish($1, $2::json, tenant => $3)', [each, '{}', tenant]);
    await receiver.waitFor(2);
    const { body } = await posthorn.api('GET', `/v1/events?tenant=${tenant}`);
    expect(body.data).toHaveLength(2);
    expect(body.data).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          schema_version: 'v1',
          schema_errors: [{ path: 'data.id', message: 'is required' }],
        }),
        expect.objectContaining({
          type: 'not.there',
          schema_errors: [{ path: 'type', message: 'is not in the catalogue' }],
        }),
      ]),
    );
    await eventually('the failure is listed', async () => {
      const listed = await posthorn.api('GET', `/v1/event-types/${type}/failures`);
      return listed.body.data.some(({ result }: { result: string }) => result === 'flagged');
    });
  });

  test('a change of the catalogue reaches the other processes', async () => {
    const [type, tenant] = [newType(), newTenant()];
    const other = await startTestPosthorn({ database, inProcess: true, args: ['--role', 'api'] });
    onTestFinished(() => other.stop());
    await expectStatus(put(type, 'v1', { schema: objectOf({}, ['a']) }), 201);
    await expectStatus(send({ type, tenant, data: {} }, other), 202);
    await expectStatus(posthorn.api('PUT', `/v1/event-types/${type}`, { validation: 'strict' }), 200);
    await eventually(
      'it is strict',
      async () => (await send({ type, tenant, data: {} }, other)).status === 422,
    );
    await expectStatus(put(type, 'v2', { schema: objectOf({}, ['b']) }), 201);
    await eventually(
      'v2 is the latest',
      async () => (await send({ type, tenant, data: { b: 1 } }, other)).status === 202,
    );
  });

  test('a payload can be tried without publishing it', async () => {
    const type = newType();
    await expectStatus(put(type, 'v1', { schema: objectOf({}, ['a']) }), 201);
    await expectStatus(put(type, 'v2', { schema }), 201);
    const attempt = (body: object) => posthorn.api('POST', `/v1/event-types/${type}/try`, body);
    expect((await attempt({ data: { id: 'x' } })).body).toMatchObject({
      valid: true,
      version: 'v2',
      errors: [],
    });
    expect((await attempt({ data: { id: 'x' }, from_version: 'v1' })).body).toMatchObject({
      valid: false,
      version: 'v1',
      errors: [{ path: 'data.a', message: 'is required' }],
    });
    await expectStatus(attempt({ data: 1, from_version: 'v3' }), 422);
  });
});

describe('VER-3: compatibility of versions', () => {
  const v1 = objectOf({ id: { type: 'string' }, total: { type: 'integer' } }, ['id']);

  test('a new version is compared with the one before, and may break', async () => {
    const type = newType();
    const first = await expectStatus(put(type, 'v1', { schema: v1 }), 201);
    expect(first.body.compatibility).toBeNull();
    const additive = { ...v1, properties: { ...v1.properties, currency: { type: 'string' } } };
    const { body: second } = await expectStatus(put(type, 'v2', { schema: additive }), 201);
    expect(second.compatibility).toMatchObject({
      against: 'v1',
      verdict: 'additive',
      changes: [{ path: 'currency', kind: 'added', breaking: false }],
    });
    const renamed = objectOf({ id: { type: 'string' }, amount: { type: 'integer' } }, ['id']);
    const { body: third } = await expectStatus(put(type, 'v3', { schema: renamed }), 201);
    expect(third.compatibility).toMatchObject({ against: 'v2', verdict: 'breaking' });
    const { body: diff } = await expectStatus(
      posthorn.api('GET', `/v1/event-types/${type}/versions/v1/diff/v3`),
      200,
    );
    expect(diff).toMatchObject({
      verdict: 'breaking',
      changes: [{ path: 'total', kind: 'renamed', breaking: true, message: 'was renamed to amount' }],
      advice: [expect.stringContaining('dual write')],
    });
    await expectStatus(posthorn.api('GET', `/v1/event-types/${type}/versions/v1/diff/v9`), 404);
  });

  test('a version cannot be replaced by a breaking schema, unless it is a draft', async () => {
    const type = newType();
    await expectStatus(put(type, 'v1', { schema: v1 }), 201);
    const broken = objectOf({ id: { type: 'integer' } }, ['id']);
    const { body } = await expectStatus(put(type, 'v1', { schema: broken }), 409);
    expect(body).toMatchObject({
      code: 'conflict',
      detail: expect.stringContaining('Make a new version instead'),
      errors: expect.arrayContaining([
        { path: 'id', message: 'may be integer now' },
        { path: 'total', message: 'was removed' },
      ]),
    });
    await expectStatus(put(type, 'v1', { schema: { ...v1, required: ['id', 'total'] } }), 200);
    await expectStatus(put(type, 'v2', { schema: v1, status: 'draft' }), 201);
    await expectStatus(put(type, 'v2', { schema: broken, status: 'draft' }), 200);
  });

  test('a version cannot become a draft again, which could be replaced by anything', async () => {
    const type = newType();
    await expectStatus(put(type, 'v1', { schema: v1, status: 'draft' }), 201);
    for (const status of ['active', 'deprecated', 'retired']) {
      await expectStatus(put(type, 'v1', { schema: v1, status }), 200);
      const draft = { schema: v1, status: 'draft' };
      const { body } = await expectStatus(put(type, 'v1', draft), 409);
      expect(body.detail).toContain(`v1 is ${status}`);
      const check = await posthorn.api('POST', `/v1/event-types/${type}/versions/v1/check`, draft);
      expect(check.body.refusal).toBe(body.detail);
    }
  });

  test('a version can be compared before it is stored, also with a key that only reads', async () => {
    const type = newType();
    const { key } = (await posthorn.api('POST', '/v1/keys', { scope: 'read' })).body;
    const check = (version: string, body: object) =>
      posthorn.api('POST', `/v1/event-types/${type}/versions/${version}/check`, body, { key });
    const first = await expectStatus(check('v1', { schema: v1 }), 200);
    expect(first.body).toEqual({ refusal: null, compatibility: null });
    await expectStatus(put(type, 'v1', { schema: v1 }), 201);

    const broken = objectOf({ id: { type: 'integer' } }, ['id']);
    expect((await expectStatus(check('v2', { schema: broken }), 200)).body).toMatchObject({
      refusal: null,
      compatibility: { against: 'v1', verdict: 'breaking' },
    });
    expect((await expectStatus(check('v1', { schema: broken }), 200)).body).toMatchObject({
      refusal: expect.stringContaining('Make a new version instead'),
      compatibility: null,
    });
    await expectStatus(check('v2', { schema: { type: 'nothing' } }), 422);
    await expectStatus(check('not a version', { schema: v1 }), 422);
    const { body } = await posthorn.api('GET', `/v1/event-types/${type}/versions`);
    expect(body.data.map(({ version }: { version: string }) => version)).toEqual(['v1']);
  });
});

describe('VER-1: the catalogue as a file', () => {
  async function run(...args: string[]) {
    const child = startProcess([MAIN, 'catalogue', ...args], {
      env: { ...TEST_SETTINGS, POSTHORN_PUBLIC_URL: posthorn.url, POSTHORN_ADMIN_KEY: ADMIN_KEY },
    });
    return { code: await child.ended, output: child.output() };
  }

  test('can be pushed, compared, pulled, and turned into types and an OpenAPI document', async () => {
    const folder = await temporaryDirectory('posthorn-catalogue-');
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const file = path.join(folder, 'catalogue.yaml');
    const type = `file.${newType()}`;
    const text = (idType: string, version = 'v1') => `event_types:
  ${type}:
    description: An order was placed.
    validation: strict
    versions:
      ${version}:
        schema: { type: object, required: [id], properties: { id: { type: ${idType} } } }
`;
    await writeFile(file, text('string'));
    expect(await run('push', file)).toMatchObject({
      code: 0,
      output: expect.stringContaining(`created ${type} v1`),
    });
    expect((await posthorn.api('GET', `/v1/event-types/${type}`)).body.validation).toBe('strict');

    await writeFile(file, text('integer'));
    expect(await run('diff', file)).toMatchObject({
      code: 1,
      output: expect.stringMatching(/^~ \S+ v1: breaking\n.*\n {4}refused: .* Make a new version instead/m),
    });
    expect(await run('push', file)).toMatchObject({ code: 1 });
    await writeFile(file, text('integer', 'v2'));
    expect(await run('diff', file)).toMatchObject({
      code: 0,
      output: expect.stringContaining(`+ ${type} v2`),
    });
    expect(await run('push', file)).toMatchObject({ code: 0 });

    const pulled = path.join(folder, 'pulled.json');
    expect(await run('pull', pulled)).toMatchObject({ code: 0 });
    const { event_types } = JSON.parse(await readFile(pulled, 'utf8'));
    expect(Object.keys(event_types[type].versions)).toEqual(['v1', 'v2']);
    // The document leaves out fields that have their default.
    expect(event_types[type].versions.v2).toEqual({
      schema: { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } },
    });
    const types = await run('types');
    expect(types.output).toContain(`| Envelope<"${type}", "v2", `);

    const { body } = await expectStatus(posthorn.api('GET', '/v1/catalogue/openapi.json'), 200);
    expect(Object.keys(body.webhooks)).toEqual(expect.arrayContaining([type, `${type}@v1`]));
    expect(await new Validator().validate(body)).toMatchObject({ valid: true });
    expect(await run('push', path.join(folder, 'missing.yaml'))).toMatchObject({ code: 2 });
  });
});
