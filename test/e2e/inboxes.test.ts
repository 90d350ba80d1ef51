/** CLI-3: inboxes are stored in PostgreSQL, and bounded in number, size and age. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/domain/clock.ts';
import { DEFAULT_ANSWER, Inboxes, type InboxLimits } from '../../src/manage/inboxes.ts';
import { deleteOldInboxes } from '../../src/postgres/queries/inboxes.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  ADMIN_KEY,
  createEndpoint,
  expectStatus,
  publish,
  startTestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

function newInboxes(given: Partial<InboxLimits> = {}) {
  let now = 1_000_000;
  const clock: Clock = { now: () => now, monotonic: () => now, after: () => () => {} };
  const limits = {
    inboxes: 2,
    inboxesPerTenant: 2,
    requestsPerInbox: 3,
    bytesPerInbox: 1000,
    expiresAfterMs: 600_000,
    ...given,
  };
  onTestFinished(async () => void (await pool.query('delete from posthorn.inboxes')));
  return {
    inboxes: new Inboxes(pool, clock, limits),
    now: () => now,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

const request = (body: string) => ({
  method: 'POST',
  path: '/',
  headers: { b: '1', a: '2' },
  body: Buffer.from(body),
  signature: { verdict: 'unknown' as const, detail: '' },
  answered: DEFAULT_ANSWER,
});

describe('inboxes', () => {
  it('keep the newest requests, up to a number and a size', async () => {
    const { inboxes } = newInboxes();
    const inbox = await inboxes.create('acme', DEFAULT_ANSWER);
    const numbers = async () => (await inboxes.listRequests(inbox.token)).map(({ number }) => number);
    for (let sent = 0; sent < 5; sent += 1) await inboxes.keep(inbox, request('x'));
    expect(await numbers()).toEqual([5, 4, 3]);
    expect(Object.keys((await inboxes.listRequests(inbox.token))[0]!.headers)).toEqual(['b', 'a']);
    await inboxes.keep(inbox, request('y'.repeat(990)));
    expect(await numbers()).toEqual([6]);
    await inboxes.keep(inbox, request('z'.repeat(5000)));
    const [newest, ...others] = await inboxes.listRequests(inbox.token);
    expect(newest).toMatchObject({ number: 7, truncated: true, body: Buffer.alloc(1000, 'z') });
    expect(others).toEqual([]);
    expect(await inboxes.find(inbox.token)).toMatchObject({ received: 7 });
    await inboxes.clear(inbox.token);
    expect(await numbers()).toEqual([]);
  });

  it('number requests that arrive at the same moment', async () => {
    const { inboxes } = newInboxes({ requestsPerInbox: 50 });
    const inbox = await inboxes.create('acme', DEFAULT_ANSWER);
    const numbers = await Promise.all(Array.from({ length: 20 }, () => inboxes.keep(inbox, request('x'))));
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  it('are limited in number, per tenant and in total, also if they are created at the same moment', async () => {
    const { inboxes } = newInboxes({ inboxes: 3 });
    const made = await Promise.allSettled(
      Array.from({ length: 4 }, () => inboxes.create('acme', DEFAULT_ANSWER)),
    );
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(made.find((result) => result.status === 'rejected')!.reason.message).toContain(
      'The tenant already has 2 inboxes',
    );
    await inboxes.create('globex', DEFAULT_ANSWER);
    await expect(inboxes.create('initech', DEFAULT_ANSWER)).rejects.toThrow('There are already 3 inboxes');
    await inboxes.delete((await inboxes.list('acme'))[0]!.token);
    await inboxes.create('initech', DEFAULT_ANSWER);
    expect(await inboxes.list(null)).toHaveLength(3);
  });

  it('expire after the last request or read', async () => {
    const { inboxes, pass } = newInboxes();
    const first = await inboxes.create('acme', DEFAULT_ANSWER);
    pass(400_000);
    const second = await inboxes.create('globex', DEFAULT_ANSWER);
    await expect(inboxes.create('acme', DEFAULT_ANSWER)).rejects.toThrow('There are already 2 inboxes');
    expect(await inboxes.list('acme')).toEqual([first]);
    pass(300_000);
    expect(await inboxes.find(first.token)).toBeNull();
    expect(await inboxes.find(second.token)).not.toBeNull();
    pass(500_000);
    expect(await inboxes.find(second.token)).not.toBeNull();
    await inboxes.create('acme', DEFAULT_ANSWER);
  });

  it('do not expire while an endpoint delivers to them, but old requests do', async () => {
    const { inboxes, pass, now } = newInboxes();
    const used = await inboxes.create('acme', DEFAULT_ANSWER);
    const unused = await inboxes.create('acme', DEFAULT_ANSWER);
    await inboxes.keep(used, request('x'));
    await pool.query(
      `insert into posthorn.endpoints (id, tenant, url, version)
       values (gen_random_uuid(), 'acme', 'http://127.0.0.1:8787/inbox/' || $1, 1)`,
      [used.token],
    );
    pass(10_000_000);
    expect((await inboxes.list('acme')).map(({ token }) => token)).toEqual([used.token]);
    await deleteOldInboxes(pool, now(), now() - 5_000_000);
    const { rows } = await pool.query('select token from posthorn.inboxes');
    expect(rows).toEqual([{ token: used.token }]);
    expect(await inboxes.listRequests(used.token)).toEqual([]);
    expect(await inboxes.find(unused.token)).toBeNull();
    await pool.query('delete from posthorn.endpoints');
    pass(10_000_000);
    await deleteOldInboxes(pool, now(), 0);
    expect(await inboxes.list(null)).toEqual([]);
  });

  it('have tokens that nobody can guess', async () => {
    const { inboxes } = newInboxes();
    const { token } = await inboxes.create('acme', DEFAULT_ANSWER);
    expect(Buffer.from(token, 'base64url')).toHaveLength(16);
    expect(await inboxes.find("x' or true")).toBeNull();
  });
});

test('CLI-3: an inbox survives kill -9, and the endpoint on it delivers afterwards', async () => {
  const env = { POSTHORN_INBOX: 'true' };
  const before = await startTestPosthorn({ database, env });
  onTestFinished(async () => void (await before.kill('SIGKILL')));
  const { body: inbox } = await expectStatus(
    before.api('POST', '/v1/inboxes', { tenant: 'umbrella', status: 204 }),
    201,
  );
  await createEndpoint(before, { url: inbox.url, tenant: 'umbrella' });
  const first = await publish(before, { type: 'a', tenant: 'umbrella', data: 1 });
  await untilDeliveries(before, first.id, 'delivered');
  await before.kill('SIGKILL');

  const { port } = new URL(before.url);
  const after = await startTestPosthorn({ database, env: { ...env, PORT: port } });
  onTestFinished(() => after.stop());
  const second = await publish(after, { type: 'a', tenant: 'umbrella', data: 2 });
  await untilDeliveries(after, second.id, 'delivered');
  const { body } = await after.api('GET', `/v1/inboxes/${inbox.token}/requests`);
  expect(
    body.data.map((each: { headers: Record<string, string>; answered: { status: number } }) => [
      each.headers['webhook-id'],
      each.answered.status,
    ]),
  ).toEqual([
    [second.id, 204],
    [first.id, 204],
  ]);
  expect(JSON.stringify(body)).not.toContain(ADMIN_KEY);
});

test('CLI-3: deleting a tenant deletes its inboxes', async () => {
  const posthorn = await startTestPosthorn({ database, env: { POSTHORN_INBOX: 'true' }, inProcess: true });
  onTestFinished(() => posthorn.stop());
  const { body: inbox } = await expectStatus(posthorn.api('POST', '/v1/inboxes', { tenant: 'wayne' }), 201);
  await fetch(inbox.url, { method: 'POST', body: 'hello' });
  await expectStatus(posthorn.api('DELETE', '/v1/tenants/wayne'), 204);
  await expectStatus(posthorn.api('GET', `/v1/inboxes/${inbox.token}`), 404);
  const { rows } = await pool.query('select from posthorn.inbox_requests where token = $1', [inbox.token]);
  expect(rows).toEqual([]);
});
