/** VER-1: `posthorn catalogue push|diff|pull` with YAML files of every kind, against a running server. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { temporaryDirectory } from '../support/postgres.ts';
import { ADMIN_KEY, expectStatus, MAIN, newTenant, TEST_SETTINGS, usePosthorn } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

const posthorn = usePosthorn();

/** Returns a function that runs `posthorn catalogue <action> <file>`, in a folder where the file has this text. */
async function openFolder() {
  const folder = await temporaryDirectory('posthorn-catalogue-');
  onTestFinished(() => rm(folder, { recursive: true }));
  const place = (name: string): string => path.join(folder, name);
  const run = async (action: string, name: string, text?: string) => {
    if (text !== undefined) await writeFile(place(name), text);
    const child = startProcess([MAIN, 'catalogue', action, place(name)], {
      env: { ...TEST_SETTINGS, POSTHORN_PUBLIC_URL: posthorn.url, POSTHORN_ADMIN_KEY: ADMIN_KEY },
    });
    return { code: await child.ended, output: child.output() };
  };
  return { run, read: (name: string) => readFile(place(name), 'utf8') };
}

const getVersion = async (type: string, version: string) =>
  (await expectStatus(posthorn.api('GET', `/v1/event-types/${type}/versions/${version}`), 200)).body;
/** Publishes under `strict`, so that the imported schema decides. */
async function publishStrictly(type: string, data: unknown): Promise<number> {
  const tenant = newTenant();
  await expectStatus(posthorn.api('PUT', `/v1/tenants/${tenant}`, { validation: 'strict' }), 201);
  return (await posthorn.api('POST', '/v1/events', { tenant, type, data })).status;
}

const openApi = (version: string, idType: string) => `
openapi: 3.1.0
info: { title: Pets, version: ${version} }
webhooks:
  pet.adopted:
    post:
      summary: A pet found a home.
      requestBody:
        content:
          application/json:
            schema: { $ref: '#/components/schemas/Pet' }
            example: { id: ${idType === 'string' ? 'a' : 1}, owner: { name: Ann } }
      responses: { 2XX: { description: Received. } }
components:
  schemas:
    Pet:
      type: object
      required: [id]
      properties:
        id: { type: ${idType} }
        owner: { $ref: '#/components/schemas/Owner' }
    Owner: { type: object, required: [name], properties: { name: { type: string } } }
`;

test('VER-1: an OpenAPI 3.1 document in YAML is compared and pushed, with what its schemas refer to', async () => {
  const { run } = await openFolder();
  expect(await run('diff', 'openapi.yaml', openApi('1.4.0', 'string'))).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^\+ pet\.adopted\n\+ pet\.adopted v1\.4\.0$/m),
  });
  expect(await run('push', 'openapi.yaml')).toMatchObject({
    code: 0,
    output: expect.stringContaining('created pet.adopted v1.4.0'),
  });
  expect(await getVersion('pet.adopted', 'v1.4.0')).toMatchObject({
    description: 'A pet found a home.',
    example: { id: 'a', owner: { name: 'Ann' } },
    status: 'active',
  });
  expect(await publishStrictly('pet.adopted', { id: 'a', owner: {} })).toBe(422);
  expect(await publishStrictly('pet.adopted', { id: 'a', owner: { name: 'Ann' } })).toBe(202);

  // The same version with a breaking schema is refused. The next version may break.
  expect(await run('diff', 'openapi.yaml', openApi('1.4.0', 'integer'))).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^~ pet\.adopted v1\.4\.0: breaking\n.*\n {4}refused: /m),
  });
  expect(await run('diff', 'openapi.yaml', openApi('2.0.0', 'integer'))).toMatchObject({
    code: 0,
    output: expect.stringContaining('+ pet.adopted v2.0.0'),
  });
  expect(await run('push', 'openapi.yaml', openApi('2.0.0', 'integer'))).toMatchObject({ code: 0 });
  expect(await publishStrictly('pet.adopted', { id: 1 })).toBe(202);
});

const ASYNC_API = `
asyncapi: 3.0.0
info: { title: Pets, version: 2027-01-31 }
channels:
  pets:
    address: pets
    messages:
      returned: { $ref: '#/components/messages/Returned' }
components:
  messages:
    Returned:
      name: pet.returned
      summary: A pet came back.
      payload: { $ref: '#/components/schemas/Pet' }
  schemas:
    Pet: { type: object, required: [id], properties: { id: { type: string } } }
`;

test('VER-1: an AsyncAPI 3 document in YAML is compared and pushed', async () => {
  const { run } = await openFolder();
  expect(await run('diff', 'asyncapi.yaml', ASYNC_API)).toMatchObject({
    code: 0,
    output: expect.stringContaining('+ pet.returned 2027-01-31'),
  });
  expect(await run('push', 'asyncapi.yaml')).toMatchObject({ code: 0 });
  expect(await getVersion('pet.returned', '2027-01-31')).toMatchObject({ description: 'A pet came back.' });
  expect(await publishStrictly('pet.returned', { id: 1 })).toBe(422);
  expect(await publishStrictly('pet.returned', { id: 'a' })).toBe(202);
  const again = await run('diff', 'asyncapi.yaml');
  expect(again).toMatchObject({ code: 0, output: expect.not.stringContaining('pet.returned') });
});

test('VER-1: a comparison fails for whatever the server would refuse', async () => {
  const { run } = await openFolder();
  const diff = (types: string) => run('diff', 'catalogue.yaml', `event_types:\n${types}`);
  expect(await diff('  pet.lost: { versions: { v1: { schema: { type: nothing } } } }')).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^\+ pet\.lost v1\n {4}refused: .*schema\.type/m),
  });
  expect(await diff('  pet.lost: { versions: { 1.0: {} } }')).toMatchObject({ code: 1 });
  expect(await diff('  pet.lost: { schema: { type: string }, example: 1 }')).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^\+ pet\.lost\n {4}refused: example/m),
  });
  expect(await diff('  posthorn.lost: {}')).toMatchObject({ code: 1 });
  // A type that has the name of a field that every object inherits.
  expect(await diff('  constructor: {}')).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^\+ constructor$/m),
  });
});

const withSunset = (time: string) => `
event_types:
  pet.sold:
    description: A pet was sold.
    deprecated: true
    sunset_at: ${time}
    versions:
      v1: { status: deprecated, sunset_at: ${time} }
`;

test('VER-2: the sunset of a type and of a version is pushed, pulled and compared', async () => {
  const { run, read } = await openFolder();
  expect(await run('push', 'catalogue.yaml', withSunset('2027-01-31T00:00:00Z'))).toMatchObject({ code: 0 });
  const { body } = await expectStatus(posthorn.api('GET', '/v1/event-types/pet.sold'), 200);
  expect(body).toMatchObject({ deprecated: true, sunset_at: '2027-01-31T00:00:00.000Z' });
  // The same time, written in another way.
  expect((await run('diff', 'catalogue.yaml', withSunset('2027-01-31T01:00:00+01:00'))).output).not.toMatch(
    /^~/m,
  );
  const { output } = await run('diff', 'catalogue.yaml', withSunset('2027-02-01T00:00:00Z'));
  expect(output).toMatch(/^~ pet\.sold$/m);
  expect(output).toMatch(/^~ pet\.sold v1: additive$/m);
  expect(await run('pull', 'pulled.yaml')).toMatchObject({ code: 0 });
  const sunset_at = '2027-01-31T00:00:00.000Z';
  expect(parse(await read('pulled.yaml')).event_types['pet.sold']).toEqual({
    description: 'A pet was sold.',
    deprecated: true,
    sunset_at,
    versions: { v1: { status: 'deprecated', sunset_at } },
  });
  const { body: document } = await expectStatus(posthorn.api('GET', '/v1/catalogue/openapi.json'), 200);
  expect(document.webhooks['pet.sold'].post).toMatchObject({ deprecated: true, 'x-sunset': sunset_at });
});
