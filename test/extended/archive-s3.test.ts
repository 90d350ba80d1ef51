/** LIF-2 on a server that speaks the protocol of S3. */
import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import S3rver from 's3rver';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openTarget } from '../../src/archive/index.ts';
import { dayOf } from '../../src/domain/archive.ts';
import { newId, publicId } from '../../src/domain/ids.ts';
import { archiveAll, dropArchived, runArchiveOnce } from '../support/archive.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createDay, startOfDay, storeOldEvent } from '../support/retention.ts';

const URL_OF_ARCHIVE = 's3://archive/of/posthorn';
const endpointId = newId(Date.now());
let folder: string;
let server: Server;
let database: TestDatabase;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'posthorn-s3-'));
  const s3 = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    vhostBuckets: false,
    directory: folder,
    configureBuckets: [{ name: 'archive', configs: [] }],
  });
  await s3.run();
  server = (s3 as unknown as { httpServer: Server }).httpServer;
  vi.stubEnv('AWS_ENDPOINT_URL_S3', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'S3RVER');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'S3RVER');
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await createDay(database, startOfDay(50));
});

const store = (status: 'delivered' | 'dead', data = '{"n": 1}') =>
  storeOldEvent(database, { status, endpointId, data, atMs: startOfDay(50) + 3_600_000 });
const countOf = async (table: string): Promise<number> =>
  (await database.query<{ n: number }>(`select count(*)::int as n from posthorn.${table}`))[0]!.n;

describe('LIF-2: an archive in S3', () => {
  test('is written, read back and listed, and events come back from it', async () => {
    const event = await store('delivered', '{"order": "Zoë",  "n":1}');
    await archiveAll(database, { url: URL_OF_ARCHIVE });
    expect(await countOf('events')).toBe(0);
    const day = dayOf(startOfDay(50));
    const names = await openTarget(URL_OF_ARCHIVE).list('events/');
    expect(names).toEqual([`events/day=${day}/manifest.json`, `events/day=${day}/part-0000.parquet`]);
    await database.query(
      `insert into posthorn.tasks (id, kind, selection, total, created_by)
       values ($1, 'restore', jsonb_build_object('eventId', $2::text), 0, 'test')`,
      [newId(Date.now()), event.id],
    );
    await runArchiveOnce(database, { url: URL_OF_ARCHIVE });
    const [restored] = await database.query<{ data: Buffer }>('select data from posthorn.events');
    expect(restored!.data.toString()).toBe('{"order": "Zoë",  "n":1}');
    expect(await countOf('attempts')).toBe(1);
    const [task] = await database.query("select state, error from posthorn.tasks where kind = 'restore'");
    expect(task).toEqual({ state: 'done', error: null });
  });

  test.each([
    ['a bucket that does not exist', 's3://none-such/x', {}, /bucket does not exist/],
    ['an unknown key', URL_OF_ARCHIVE, { AWS_ACCESS_KEY_ID: 'nobody' }, /Check AWS_ACCESS_KEY_ID|rights/],
    ['no keys', URL_OF_ARCHIVE, { AWS_ACCESS_KEY_ID: '' }, /needs AWS_ACCESS_KEY_ID/],
  ])('%s: the error is clear, and nothing is dropped', async (_what, url, env, message) => {
    const event = await store('delivered');
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    await dropArchived(database);
    await expect(runArchiveOnce(database, { url })).rejects.toThrow(message);
    expect(await dropArchived(database)).toEqual([]);
    const [kept] = await database.query<{ id: string }>('select id from posthorn.events');
    expect(publicId('evt', kept!.id)).toBe(publicId('evt', event.id));
  });

  test('a store that vanishes half-way: the error is clear, and the next run completes', async () => {
    await store('delivered');
    await dropArchived(database);
    const url = 's3://archive/vanishing';
    const { port } = server.address() as AddressInfo;
    await expect(
      runArchiveOnce(database, {
        url,
        wrap: (inner) => ({
          ...inner,
          async readRows(kind, range, maxRows, maxBytes) {
            if (server.listening) {
              server.closeAllConnections();
              await new Promise((resolve) => server.close(resolve));
            }
            return inner.readRows(kind, range, maxRows, maxBytes);
          },
        }),
      }),
    ).rejects.toThrow(/cannot be reached: ECONNREFUSED/);
    expect(await dropArchived(database)).toEqual([]);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await runArchiveOnce(database, { url });
    expect(await dropArchived(database)).not.toEqual([]);
  });
});
