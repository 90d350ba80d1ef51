import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { expectStatus, newTenant, startTestPosthorn, type TestPosthorn } from '../support/posthorn.ts';

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
    expect(replaced).toMatchObject({ description: '', status: 'deprecated', sunset_at: null, latest: false });
    await expectStatus(posthorn.api('DELETE', `/v1/event-types/${type}`), 204);
    await expectStatus(posthorn.api('GET', path), 404);
  });

  test('versions are listed newest first, and the latest is the newest active one', async () => {
    const type = newType();
    for (const version of ['v2', '2026-04-01', 'v1']) await expectStatus(put(type, version, {}), 201);
    await expectStatus(put(type, 'v3', { status: 'draft' }), 201);
    const list = async () =>
      (await expectStatus(posthorn.api('GET', `/v1/event-types/${type}/versions`), 200)).body;
    const { data, latest, next_cursor } = await list();
    expect(data.map(({ version }: { version: string }) => version)).toEqual(['v3', 'v1', '2026-04-01', 'v2']);
    expect([latest, next_cursor]).toEqual(['v1', null]);
    await expectStatus(put(type, 'v3', { status: 'active' }), 200);
    expect((await list()).latest).toBe('v3');
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
