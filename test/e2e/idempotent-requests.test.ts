import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  createEndpoint,
  expectStatus,
  newTenant,
  startTestPosthorn,
  type TestPosthorn,
  usePosthorns,
} from '../support/posthorn.ts';
import { readDocument } from '../support/routes.ts';

const settings = { POSTHORN_IDEMPOTENCY_CLAIM_MS: '10m', POSTHORN_UPKEEP_MS: '200' };
const [posthorn, other] = usePosthorns({ env: settings }, { env: settings, args: ['--role', 'api'] });

const URL = 'http://127.0.0.1:9/';

/** Returns a function that sends the same POST with the same key at every call. */
function repeatable(path: string, body: unknown, key: string | null = null) {
  const idempotencyKey = randomUUID();
  const post = (process: TestPosthorn = posthorn, changed: unknown = body): Promise<Answer> =>
    process.api('POST', path, changed, {
      headers: { 'idempotency-key': idempotencyKey },
      ...(key !== null && { key }),
    });
  return { post, idempotencyKey };
}

const endpointsOf = async (tenant: string): Promise<{ id: string }[]> =>
  (await posthorn.api('GET', `/v1/endpoints?tenant=${tenant}`)).body.data;

/** Makes requests that create an endpoint wait until the returned function is called. */
const holdEndpoints = () => hold('update posthorn.subscription_version set version = version');

async function hold(statement: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: posthorn.database.url });
  await client.connect();
  await client.query('begin');
  await client.query(statement);
  let held = true;
  const giveBack = async () => {
    if (!held) return;
    held = false;
    await client.query('rollback');
    await client.end();
  };
  onTestFinished(giveBack);
  return giveBack;
}

const untilClaimed = (idempotencyKey: string) =>
  eventually(
    'the request is under way',
    async () =>
      (
        await posthorn.database.query('select from posthorn.idempotent_requests where key = $1', [
          idempotencyKey,
        ])
      ).length === 1,
  );

describe('Idempotency-Key: the same request again', () => {
  test('gets the first answer, including secrets, from every process, and runs once', async () => {
    const tenant = newTenant();
    const { post } = repeatable('/v1/endpoints', { tenant, url: URL });
    const first = await expectStatus(post(), 201);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    for (const process of [posthorn, other]) {
      const again = await expectStatus(post(process), 201);
      expect(again.text).toBe(first.text);
      expect(again.headers).toMatchObject({
        'idempotency-replayed': 'true',
        location: first.headers.location,
        'content-type': first.headers['content-type'],
      });
      expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
    }
    expect(first.body.secret).toMatch(/^whsec_/);
    expect(await endpointsOf(tenant)).toHaveLength(1);
    const { body: log } = await posthorn.api('GET', `/v1/audit?tenant=${tenant}`);
    expect(log.data).toHaveLength(1);

    const stored = await posthorn.database.query('select answer from posthorn.idempotent_requests');
    for (const { answer } of stored)
      for (const text of [first.body.secret.slice(6), first.body.id, tenant])
        expect(answer.includes(text)).toBe(false);
  });

  test('works for keys, rotated secrets, tests, pauses and bulk orders', async () => {
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { tenant, url: URL });
    for (const [path, body] of [
      ['/v1/keys', { scope: 'tenant', tenant }],
      [`/v1/endpoints/${id}/rotate-secret`, {}],
      [`/v1/endpoints/${id}/test`, undefined],
      [`/v1/endpoints/${id}/replay`, {}],
      ['/v1/dead-letters/replay', { filter: { tenant } }],
      [`/v1/endpoints/${id}/pause`, undefined],
    ] as const) {
      const { post } = repeatable(path, body);
      const first = await post();
      expect(first.status, first.text).toBeLessThan(300);
      const again = await post(other);
      expect([again.status, again.text], path).toEqual([first.status, first.text]);
      expect(again.headers['idempotency-replayed'], path).toBe('true');
    }
  });

  test('is supported by exactly the POST routes that change something', async () => {
    const { paths } = await readDocument();
    const offering = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { parameters = [] }]) => parameters.some(({ name }) => name === 'Idempotency-Key'))
        .map(([method]) => `${method.toUpperCase()} ${path}`),
    );
    const expected = Object.entries(paths).flatMap(([path, methods]) =>
      'post' in methods &&
      path.startsWith('/v1/') &&
      !/\/(filters\/\w+|try|preview|check|estimate)$/.test(path)
        ? [`POST ${path}`]
        : [],
    );
    expect(offering.toSorted()).toEqual(expected.toSorted());
    expect(offering).toContain('POST /v1/keys');
  });

  test('with another body or at another address is a 409', async () => {
    const tenant = newTenant();
    const { post, idempotencyKey } = repeatable('/v1/endpoints', { tenant, url: URL });
    await expectStatus(post(), 201);
    const changed = await expectStatus(post(other, { tenant, url: `${URL}other` }), 409);
    expect(changed.body).toMatchObject({
      code: 'idempotency_conflict',
      errors: [{ path: 'idempotency-key' }],
    });
    const elsewhere = await posthorn.api(
      'POST',
      '/v1/keys',
      { scope: 'read' },
      { headers: { 'idempotency-key': idempotencyKey } },
    );
    expect(elsewhere.body).toMatchObject({ status: 409, code: 'idempotency_conflict' });
    expect(await endpointsOf(tenant)).toHaveLength(1);
  });

  test('with another API key is another request', async () => {
    const tenant = newTenant();
    const headers = { 'idempotency-key': randomUUID() };
    const ids = new Set<string>();
    for (let i = 0; i < 2; i += 1) {
      const { body } = await posthorn.api('POST', '/v1/keys', { scope: 'tenant', tenant });
      const answer = await posthorn.api('POST', '/v1/endpoints', { url: URL }, { key: body.key, headers });
      ids.add((await expectStatus(answer, 201)).body.id);
    }
    expect(ids.size).toBe(2);
  });

  test('many times at once in two processes runs once', async () => {
    const tenant = newTenant();
    const { post } = repeatable('/v1/endpoints', { tenant, url: URL });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post(index % 2 === 0 ? posthorn : other)),
    );
    const made = answers.filter(({ status }) => status === 201);
    expect(made.filter(({ headers }) => headers['idempotency-replayed'] === undefined)).toHaveLength(1);
    expect(new Set(made.map(({ text }) => text)).size).toBe(1);
    for (const { status, body } of answers)
      if (status !== 201) expect(body).toMatchObject({ status: 409, code: 'request_in_progress' });
    expect(await endpointsOf(tenant)).toHaveLength(1);
  });

  test('while the first one runs is a 409 with Retry-After', async () => {
    const tenant = newTenant();
    const { post, idempotencyKey } = repeatable('/v1/endpoints', { tenant, url: URL });
    const giveBack = await holdEndpoints();
    const first = post();
    await untilClaimed(idempotencyKey);
    const second = await expectStatus(post(other), 409);
    expect(second.body.code).toBe('request_in_progress');
    expect(second.headers['retry-after']).toBe('1');
    await giveBack();
    const { text } = await expectStatus(first, 201);
    expect((await expectStatus(post(other), 201)).text).toBe(text);
    expect(await endpointsOf(tenant)).toHaveLength(1);
  });

  test.each([
    ['when the claim has expired', "- interval '10 minutes'"],
    ['when the clock has stepped back by 40 days', "+ interval '40 days'"],
  ])('after its process was killed runs again %s', async (_, claimMoves) => {
    const doomed = await startTestPosthorn({
      database: posthorn.database,
      env: settings,
      args: ['--role', 'api'],
    });
    const tenant = newTenant();
    const { post, idempotencyKey } = repeatable('/v1/endpoints', { tenant, url: URL });
    const giveBack = await holdEndpoints();
    const lost = post(doomed).catch(() => 'lost');
    await untilClaimed(idempotencyKey);
    await doomed.kill('SIGKILL');
    expect(await lost).toBe('lost');
    await giveBack();
    expect((await post()).body).toMatchObject({ status: 409, code: 'request_in_progress' });
    await posthorn.database.query(
      `update posthorn.idempotent_requests set claimed_until = claimed_until ${claimMoves} where key = $1`,
      [idempotencyKey],
    );
    // The key is still refused for another request.
    expect((await post(other, { tenant, url: `${URL}other` })).body.code).toBe('idempotency_conflict');
    const carriedOut = await expectStatus(post(), 201);
    expect(carriedOut.headers['idempotency-replayed']).toBeUndefined();
    expect(await endpointsOf(tenant)).toHaveLength(1);
  });
});

describe('the stored answer', () => {
  test('is missing if the database failed after the change, and the request is not repeated', async () => {
    const tenant = newTenant();
    const { post } = repeatable('/v1/endpoints', { tenant, url: URL });
    // The answer contains statistics of the endpoint, which Posthorn reads after it has created the endpoint.
    const giveBack = await hold('lock table posthorn.endpoint_stats in access exclusive mode');
    const answer = await expectStatus(post(), 500);
    expect(answer.body).toMatchObject({ code: 'internal', detail: expect.stringContaining('Check whether') });
    expect(answer.headers['retry-after']).toBeUndefined();
    await giveBack();
    await expectStatus(post(), 409);
    expect(await endpointsOf(tenant)).toHaveLength(1);
  });

  test('does not exist for an internal error, so the same key runs again', async () => {
    const tenant = newTenant();
    const { post } = repeatable('/v1/endpoints', { tenant, url: URL });
    await posthorn.database.query('alter table posthorn.endpoint_secrets rename to somewhere_else');
    const failed = await post();
    await posthorn.database.query('alter table posthorn.somewhere_else rename to endpoint_secrets');
    expect(failed.status).toBe(500);
    await expectStatus(post(other), 201);
    expect(await endpointsOf(tenant)).toHaveLength(1);
  });

  test('exists for a conflict, but not for a request that was refused earlier', async () => {
    const tenant = newTenant();
    const { id } = await createEndpoint(posthorn, { tenant, url: URL, enabled: false });
    const refused = repeatable(`/v1/endpoints/${id}/test`, {});
    await expectStatus(refused.post(), 409);
    await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${id}`, { enabled: true }), 200);
    const again = await expectStatus(refused.post(), 409);
    expect(again.body.code).toBe('conflict');
    expect(again.headers).toMatchObject({
      'idempotency-replayed': 'true',
      'content-type': expect.stringContaining('application/problem+json'),
    });

    const invalid = repeatable('/v1/endpoints', { tenant });
    await expectStatus(invalid.post(), 422);
    await expectStatus(invalid.post(posthorn, { tenant, url: URL }), 201);
  });

  test.each(['', 'x'.repeat(256)])('an invalid key is refused (%#)', async (key) => {
    const headers = { 'idempotency-key': key };
    const answer = await posthorn.api('POST', '/v1/keys', { scope: 'read' }, { headers });
    expect(answer.body).toMatchObject({ status: 422, errors: [{ path: 'idempotency-key' }] });
  });

  test('expires and is deleted', async () => {
    const short = await startTestPosthorn({
      database: posthorn.database,
      inProcess: true,
      env: { ...settings, POSTHORN_ROLE: 'api', POSTHORN_IDEMPOTENCY_TTL_MS: '1s' },
    });
    onTestFinished(() => short.stop());
    const tenant = newTenant();
    const { post, idempotencyKey } = repeatable('/v1/endpoints', { tenant, url: URL });
    const first = await expectStatus(post(short), 201);
    await eventually(
      'it is removed',
      async () =>
        (
          await posthorn.database.query('select from posthorn.idempotent_requests where key = $1', [
            idempotencyKey,
          ])
        ).length === 0,
    );
    const second = await expectStatus(post(short), 201);
    expect(second.body.id).not.toBe(first.body.id);
  });
});
