/** Posthorn inside another program (CLI-4): `createPosthorn`, and the example that uses it. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError, createPosthorn, type Posthorn, Problem } from '../../src/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { newReceiver } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

let database: TestDatabase;
let posthorn: Posthorn;
const encryptionKey = randomBytes(32).toString('base64');

beforeAll(async () => {
  database = await createTestDatabase();
  posthorn = await createPosthorn({
    databaseUrl: database.url,
    adminKey: `phk_${randomBytes(24).toString('base64url')}`,
    encryptionKey,
    port: 0,
    settings: { POSTHORN_EGRESS_ALLOW: '127.0.0.0/8', POSTHORN_EGRESS_HTTPS: 'optional' },
  });
});
afterAll(async () => {
  await posthorn?.stop();
  await database?.drop();
});

async function register(url: string, types: string[], server = posthorn): Promise<void> {
  const answer = await request(`${server.url}/v1/endpoints`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ url, events: types }),
  });
  expect(answer.statusCode).toBe(201);
  await answer.body.dump();
}

describe('CLI-4 createPosthorn', () => {
  it('publishes without HTTP, and delivers', async () => {
    const receiver = await newReceiver();
    await register(receiver.url, ['library.direct']);
    const event = await posthorn.publish({ type: 'library.direct', json: '{"n":1.10}' });
    expect(event).toMatchObject({
      type: 'library.direct',
      tenant: 'default',
      deliveries: 1,
      duplicate: false,
    });
    expect(event.createdAt).toBeInstanceOf(Date);
    const [arrived] = await receiver.waitFor(1);
    expect(arrived!.headers['webhook-id']).toBe(event.id);
    expect(arrived!.body.toString()).toContain('"data":{"n":1.10}');
  });

  it('stores one event for a repeated idempotency key', async () => {
    const event = { type: 'library.twice', data: [1], idempotencyKey: 'one' };
    const first = await posthorn.publish(event);
    expect(await posthorn.publish(event)).toMatchObject({ id: first.id, duplicate: true });
    await expect(posthorn.publish({ ...event, data: [2] })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
  });

  it.each([
    [{ type: 'not a type', data: 1 }, 'type'],
    [{ type: 'posthorn.own', data: 1 }, 'type'],
    [{ type: 'a.b', data: undefined }, 'data'],
    [{ type: 'a.b', data: 1, tenant: '../x' }, 'tenant'],
    [{ type: 'a.b', json: '{' }, 'json'],
    [{ type: 'a.b', data: 1, headers: { 'webhook-id': 'x' } }, 'headers'],
  ])('names the invalid field of %j', async (event, path) => {
    const error = await posthorn.publish(event as never).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Problem);
    expect((error as Problem).message).toContain(path);
  });

  it('OUT-2 publishes in the transaction of the caller, or not at all', async () => {
    const receiver = await newReceiver();
    await register(receiver.url, ['library.tx']);
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('begin');
    await posthorn.publish({ type: 'library.tx', data: 'never' }, { tx: client });
    await client.query('rollback');
    await client.query('begin');
    const { id } = await posthorn.publish({ type: 'library.tx', data: 'committed' }, { tx: client });
    await client.query('commit');
    const [arrived] = await receiver.waitFor(1);
    expect(arrived!.headers['webhook-id']).toBe(id);
  });

  it('refuses an invalid configuration and leaves nothing running', async () => {
    await expect(createPosthorn({ databaseUrl: database.url })).rejects.toBeInstanceOf(ConfigError);
    await expect(
      createPosthorn({ databaseUrl: database.url, settings: { POSTHORN_DRAIN_MS: 'soon' } }),
    ).rejects.toThrow('POSTHORN_DRAIN_MS');
  });

  it('can be stopped twice', async () => {
    const other = await createPosthorn({
      databaseUrl: database.url,
      adminKey: posthorn.adminKey,
      encryptionKey,
      port: 0,
    });
    await Promise.all([other.stop(), other[Symbol.asyncDispose]()]);
    await expect(request(`${other.url}/healthz`)).rejects.toThrow();
  });
});

describe('the example', () => {
  it('runs and publishes its orders', async () => {
    const own = await createTestDatabase({ empty: true });
    const dataDir = await mkdtemp(path.join(tmpdir(), 'posthorn-example-'));
    const shop = startProcess(
      [
        '--conditions=posthorn-source',
        fileURLToPath(new URL('../../examples/express-shop/shop.ts', import.meta.url)),
      ],
      { env: { DATABASE_URL: own.url, PORT: '0', POSTHORN_PORT: '0', POSTHORN_DATA_DIR: dataDir } },
    );
    onTestFinished(async () => {
      if (shop.running) await shop.kill('SIGKILL');
      await own.drop();
      await rm(dataDir, { recursive: true, force: true });
    });
    const said = await eventually(
      'the shop is open',
      () => /shop: (\S+)\nposthorn: (\S+)\/console {2}\(admin key: (\S+)\)/.exec(shop.stdout()),
      { timeoutMs: 90_000, saw: shop.output },
    );
    const [, url, posthornUrl, adminKey] = said as unknown as [string, string, string, string];
    const receiver = await newReceiver();
    await register(receiver.url, ['order.*'], { url: posthornUrl, adminKey } as Posthorn);
    const order = (body: object) =>
      request(`${url}/orders`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const refused = await order({ item: 'horn' });
    expect(refused.statusCode).toBe(400);
    await refused.body.dump();
    const sold = await order({ item: 'horn', amount: 3 });
    expect(sold.statusCode).toBe(201);
    const { event } = (await sold.body.json()) as { event: string };
    const [arrived] = await receiver.waitFor(1);
    expect(arrived!.headers['webhook-id']).toBe(event);
    expect(JSON.parse(arrived!.body.toString()).data).toMatchObject({ item: 'horn', amount: 3 });
    expect(await shop.kill('SIGTERM')).toBe(0);
  });
});
