/** Details of the HTTP API that clients rely on: what is refused, and that a refused request changes nothing. */
import { describe, expect, test } from 'vitest';
import { createEndpoint, expectStatus, newTenant, usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_INBOX: 'on' } });
const URL_OF_NOBODY = 'https://example.com/';
const JSON_TYPE = { headers: { 'content-type': 'application/json' } };

describe('a body that is null or missing', () => {
  async function expectUnchanged(method: string, path: string): Promise<void> {
    const before = await expectStatus(posthorn.api('GET', path), 200);
    for (const body of ['null', ' null ', '', undefined]) {
      const { body: problem } = await expectStatus(posthorn.api(method, path, body, JSON_TYPE), 422);
      expect(problem).toMatchObject({ code: 'invalid', errors: [{ path: 'body' }] });
    }
    expect((await posthorn.api('GET', path)).body).toEqual(before.body);
  }

  test('does not reset a tenant', async () => {
    const path = `/v1/tenants/${newTenant()}`;
    const settings = { name: 'Acme', metadata: { plan: 'gold' }, ingest_rate_limit: { per_second: 50 } };
    await expectStatus(posthorn.api('PUT', path, settings), 201);
    await expectUnchanged('PUT', path);
  });

  test('does not reset an event type', async () => {
    const path = '/v1/event-types/body.missing';
    await expectStatus(posthorn.api('PUT', path, { description: 'Kept', schema: { type: 'object' } }), 201);
    await expectUnchanged('PUT', path);
  });

  test('does not change an endpoint or an inbox', async () => {
    const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    await expectUnchanged('PATCH', `/v1/endpoints/${id}`);
    const inbox = await expectStatus(posthorn.api('POST', '/v1/inboxes', { status: 503 }), 201);
    await expectUnchanged('PATCH', `/v1/inboxes/${inbox.body.token}`);
  });

  test('null is refused where a missing body means the defaults', async () => {
    const { id } = await createEndpoint(posthorn, { url: URL_OF_NOBODY, tenant: newTenant() });
    const path = `/v1/endpoints/${id}`;
    for (const action of ['rotate-secret', 'pause', 'test', 'replay'])
      await expectStatus(posthorn.api('POST', `${path}/${action}`, 'null'), 422);
    await expectStatus(posthorn.api('POST', `${path}/rotate-secret`, undefined, JSON_TYPE), 200);
    for (const path of ['/v1/events', '/v1/events/batch', '/v1/keys'])
      await expectStatus(posthorn.api('POST', path, 'null'), 422);
  });
});

test.each(['2027-02-30T00:00:00Z', '2027-01-31T24:00:00Z', '2027-02-29T12:00:00+01:00'])(
  'the impossible time %s is refused, with the field that has it',
  async (time) => {
    const encoded = encodeURIComponent(time);
    const event = { type: 'a.b', data: 1, deliver_at: time };
    const calls: [string, Parameters<typeof posthorn.api>][] = [
      ['deliver_at', ['POST', '/v1/events', event]],
      ['filter.since', ['POST', '/v1/dead-letters/replay', { filter: { since: time } }]],
    ];
    for (const list of ['events', 'deliveries', 'dead-letters', 'audit'])
      for (const field of ['since', 'until']) calls.push([field, ['GET', `/v1/${list}?${field}=${encoded}`]]);
    for (const [path, call] of calls) {
      const { body } = await expectStatus(posthorn.api(...call), 422);
      expect(body.errors, call[1]).toMatchObject([{ path }]);
    }
  },
);
