/** A secret in a custom header whose name does not look like one: encrypted at rest, and shown only to callers who may read it. */
import { expect, it, onTestFinished } from 'vitest';
import { firstIdAt, parsePublicId } from '../../src/domain/ids.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { readArchiveRows } from '../../src/postgres/queries/archive-rows.ts';
import { eventually } from '../support/eventually.ts';
import {
  attemptsOf,
  createEndpoint,
  expectStatus,
  newReceiver,
  newTenant,
  publish,
  untilDeliveries,
  usePosthorn,
} from '../support/posthorn.ts';

const posthorn = usePosthorn({ inProcess: true, env: { POSTHORN_UPKEEP_MS: '100', POSTHORN_INBOX: 'true' } });

/** Headers of real products. None of them contains a word that marks credentials behind a separator. */
const SECRETS = {
  'X-AuthToken': 'hidden-1',
  'x-sharedsecret': 'hidden-2',
  'x-functions-key': 'hidden-3',
  'Ocp-Apim-Subscription-Key': 'hidden-4',
  'x-goog-channel': 'hidden-5',
};
const REDACTED = Object.fromEntries(Object.keys(SECRETS).map((name) => [name, '[redacted]']));

async function keyOf(scope: 'read' | 'tenant', tenant: string): Promise<string> {
  return (await expectStatus(posthorn.api('POST', '/v1/keys', { scope, tenant }), 201)).body.key;
}
const storedConfig = async (id: string): Promise<Record<string, unknown>> => {
  const [row] = await posthorn.database.query<{ config: Record<string, unknown> }>(
    'select config from posthorn.endpoints where id = $1',
    [parsePublicId('ep', id)],
  );
  return row!.config;
};

it('values are in no table, and a read key sees none in the endpoint, its attempts and its sent requests', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const headers = { ...SECRETS, 'X-Env': 'staging' };
  const endpoint = { url: receiver.url, tenant, headers, plain_headers: ['x-env'] };
  const { id } = await createEndpoint(posthorn, endpoint);
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
  expect(receiver.requests[0]!.headers).toMatchObject({ 'x-functions-key': 'hidden-3', 'x-env': 'staging' });

  for (const table of ['endpoints', 'attempts', 'audit_log', 'idempotent_requests'])
    expect(JSON.stringify(await posthorn.database.query(`select * from posthorn.${table}`))).not.toContain(
      'hidden-',
    );

  const reader = await keyOf('read', tenant);
  for (const path of [
    `/v1/endpoints/${id}`,
    `/v1/endpoints?tenant=${tenant}`,
    `/v1/deliveries/${delivery!.id}/attempts`,
    `/v1/events/${event.id}/attempts`,
    `/v1/deliveries/${delivery!.id}/attempts/1/request`,
  ]) {
    const answer = await expectStatus(posthorn.api('GET', path, undefined, { key: reader }), 200);
    const all = answer.text + JSON.stringify(answer.headers);
    expect(all, path).not.toContain('hidden-');
    expect(all, path).toContain('staging');
  }
  const shown = (await posthorn.api('GET', `/v1/endpoints/${id}`, undefined, { key: reader })).body;
  expect(shown.headers).toEqual({ ...REDACTED, 'X-Env': 'staging' });
  expect((await attemptsOf(posthorn, delivery!.id))[0]!.request_headers).toMatchObject({
    'x-goog-channel': '[redacted]',
    'x-env': 'staging',
  });
});

it('a key that may read secrets sees the values, and both views can be sent back', async () => {
  const tenant = newTenant();
  const headers = { ...SECRETS, Authorization: 'Bearer hidden-0' };
  const { id } = await createEndpoint(posthorn, { url: 'https://example.com/', tenant, headers });
  const key = await keyOf('tenant', tenant);
  const path = `/v1/endpoints/${id}`;
  const { body: seen } = await expectStatus(posthorn.api('GET', path, undefined, { key }), 200);
  expect(seen.headers).toEqual({ ...SECRETS, Authorization: '[redacted]' });
  const reader = await keyOf('read', tenant);
  const { body: redacted } = await expectStatus(posthorn.api('GET', path, undefined, { key: reader }), 200);
  const before = await storedConfig(id);
  for (const body of [
    seen,
    redacted,
    { headers: { 'x-functions-key': 'hidden-3' } },
    { headers: REDACTED },
  ]) {
    const { body: after } = await expectStatus(posthorn.api('PATCH', path, body, { key }), 200);
    expect(await storedConfig(id)).toEqual(before);
    expect(after.updated_at).toBe(seen.updated_at);
  }
  await expectStatus(posthorn.api('PATCH', path, { headers: { 'x-functions-key': 'new' } }, { key }), 200);
  expect((await posthorn.api('GET', path, undefined, { key })).body.headers).toMatchObject({
    'x-functions-key': 'new',
    'x-sharedsecret': 'hidden-2',
  });
});

it('plain_headers shows no stored value that the caller could not see before', async () => {
  const tenant = newTenant();
  const headers = { Authorization: 'Bearer hidden-0', 'x-env': 'staging' };
  const { id } = await createEndpoint(posthorn, { url: 'https://example.com/', tenant, headers });
  const patch = (body: object) => posthorn.api('PATCH', `/v1/endpoints/${id}`, body);
  const refused = await expectStatus(patch({ plain_headers: ['x-env', 'AUTHORIZATION'] }), 422);
  expect(refused.body.errors).toMatchObject([{ path: 'plain_headers[1]' }]);
  await expectStatus(
    patch({ plain_headers: ['authorization'], headers: { Authorization: '[redacted]' } }),
    422,
  );
  await expectStatus(patch({ plain_headers: ['x-env'] }), 200);
  const given = { plain_headers: ['authorization'], headers: { Authorization: 'public' } };
  expect((await expectStatus(patch(given), 200)).body.headers.Authorization).toBe('public');
});

it('a key with endpoints:write but without secrets:read cannot see the values, nor have them sent elsewhere', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant, headers: SECRETS });
  const scopes = ['endpoints:read', 'endpoints:write'];
  const { body } = await expectStatus(
    posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant, scopes }),
    201,
  );
  const key = body.key as string;
  const path = `/v1/endpoints/${id}`;
  const { body: seen } = await expectStatus(posthorn.api('GET', path, undefined, { key }), 200);
  expect(seen.headers).toEqual(REDACTED);
  const patch = (change: object) => posthorn.api('PATCH', path, change, { key });
  await expectStatus(patch(seen), 200);
  const moved = await expectStatus(patch({ url: 'https://attacker.example/' }), 422);
  expect(moved.body.errors).toHaveLength(Object.keys(SECRETS).length);
  await expectStatus(patch({ plain_headers: ['x-functions-key'] }), 422);
  // On a shared host, another path can belong to somebody else.
  await expectStatus(patch({ url: `${receiver.url}/elsewhere` }), 422);
  await expectStatus(patch({ url: 'https://elsewhere.example/', headers: null }), 200);
});

it('headers that an earlier version stored in plain text are encrypted in the background, and still sent', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  const { id } = await createEndpoint(posthorn, { url: receiver.url, tenant });
  await posthorn.database.query(
    `update posthorn.endpoints set config = config - 'sealed_headers' || jsonb_build_object('headers', $2::jsonb), version = version + 1
        where id = $1`,
    [parsePublicId('ep', id), JSON.stringify(SECRETS)],
  );
  const config = await eventually('the headers are sealed', async () => {
    const stored = await storedConfig(id);
    return 'headers' in stored ? null : stored;
  });
  expect(Object.keys(config.sealed_headers as object).sort()).toEqual(Object.keys(SECRETS).sort());
  const { body } = await expectStatus(
    posthorn.api('PATCH', `/v1/endpoints/${id}`, { description: 'x' }),
    200,
  );
  expect(body.headers).toEqual(SECRETS);
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  await untilDeliveries(posthorn, event.id, 'delivered');
  expect(receiver.requests[0]!.headers['x-sharedsecret']).toBe('hidden-2');
});

/** What the archive would store of all attempts. */
async function readForArchive(): Promise<unknown[]> {
  const database = openDatabase({
    connectionString: posthorn.database.url,
    apiConnections: 1,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  onTestFinished(() => database.close());
  const everything = { from: firstIdAt(0), to: firstIdAt(Date.now() + 60_000), after: null };
  const rows = await readArchiveRows(database.pool('api'), 'attempts', everything, 1000, 1e9);
  expect(rows.length).toBeGreaterThan(0);
  return rows;
}

it('values that an earlier version recorded with attempts are redacted in the background, once', async () => {
  const receiver = await newReceiver();
  const tenant = newTenant();
  await createEndpoint(posthorn, { url: receiver.url, tenant, headers: SECRETS });
  const headers = { 'x-trace': 'of the event' };
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1, headers });
  const [delivery] = await untilDeliveries(posthorn, event.id, 'delivered');
  const recorded = (await attemptsOf(posthorn, delivery!.id))[0]!.request_headers;
  const stored = { ...recorded, 'x-sharedsecret': 'hidden-2', 'x-functions-key': 'hidden-3' };
  await posthorn.database.query('update posthorn.attempts set request_headers = $2 where delivery_id = $1', [
    parsePublicId('dlv', delivery!.id),
    JSON.stringify(stored),
  ]);
  // As the migration does for a database with attempts. Upkeep begins when earlier versions no longer run.
  await posthorn.database.query('insert into posthorn.attempts_redaction default values');
  expect(JSON.stringify(await readForArchive())).not.toMatch(/hidden-[23]/);
  // While one is registered, upkeep waits, and for an hour afterwards.
  await posthorn.database.query(
    `update posthorn.attempts_redaction set until = now() + interval '1 minute', after_delivery = 'ffffffff-ffff-ffff-ffff-ffffffffffff'`,
  );
  await eventually('upkeep waits', async () => {
    await posthorn.database.query(
      `insert into posthorn.workers (id, name, lock_key, wire_version, stopping)
       values ('00000000-0000-7000-8000-000000000001', 'previous release', 1, 1, true)
           on conflict (id) do update set renewed_at = clock_timestamp()`,
    );
    const [row] = await posthorn.database.query<{ waits: boolean }>(
      `select until > now() + interval '55 minutes' and after_delivery < 'ffffffff-ffff-ffff-ffff-ffffffffffff' as waits
         from posthorn.attempts_redaction`,
    );
    return row!.waits;
  });
  await posthorn.database.query("delete from posthorn.workers where name = 'previous release'");
  await posthorn.database.query("update posthorn.attempts_redaction set until = now() + interval '1 ms'");
  await eventually('the pass has ended', async () => {
    const left = await posthorn.database.query('select from posthorn.attempts_redaction');
    return left.length === 0;
  });
  const [attempt] = await attemptsOf(posthorn, delivery!.id);
  expect(attempt!.request_headers).toEqual(recorded);
  expect(attempt!.request_headers).toMatchObject({
    'x-trace': 'of the event',
    'x-functions-key': '[redacted]',
    'webhook-signature': expect.stringMatching(/^v1,/),
  });
});

it('an inbox shows no header that its endpoint keeps secret', async () => {
  const tenant = newTenant();
  const { body: inbox } = await expectStatus(posthorn.api('POST', '/v1/inboxes', { tenant }), 201);
  const headers = { 'x-functions-key': 'hidden-3', 'x-env': 'staging' };
  await createEndpoint(posthorn, { url: inbox.url, tenant, headers, plain_headers: ['x-env'] });
  const event = await publish(posthorn, { tenant, type: 'a.b', data: 1 });
  await untilDeliveries(posthorn, event.id, 'delivered');
  const { text } = await expectStatus(posthorn.api('GET', `/v1/inboxes/${inbox.token}/requests`), 200);
  expect(text).toContain('staging');
  expect(text).not.toContain('hidden-3');
});
