/** A key that may only read the catalogue looks for what schemas and their failures say about payloads. */
import { test } from 'vitest';
import { expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true });
const newKey = async (settings: object): Promise<string> =>
  (await expectStatus(posthorn.api('POST', '/v1/keys', settings), 201)).body.key;

test('a key with catalogue:read reads types, but no failures of payloads, and changes nothing', async () => {
  const tenant = newTenant();
  const key = await newKey({ scope: 'read', tenant, scopes: ['catalogue:read'] });
  const schema = { type: 'object', required: ['n'] };
  await expectStatus(posthorn.api('PUT', '/v1/event-types/attack.type', { schema }), 201);
  const call = (method: string, path: string, body?: unknown) => posthorn.api(method, path, body, { key });
  await expectStatus(call('GET', '/v1/event-types/attack.type'), 200);
  await expectStatus(call('PUT', '/v1/event-types/attack.type', { schema: {} }), 403);
  await expectStatus(call('DELETE', '/v1/event-types/attack.type'), 403);
  for (const path of ['/v1/event-types/attack.type/failures', '/v1/events', '/v1/endpoints'])
    await expectStatus(call('GET', path), 403);
});
