/** LIF-2 on servers that speak the protocol of S3 and check signatures. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openTarget } from '../../src/archive/index.ts';
import { dayOf } from '../../src/domain/archive.ts';
import { newId, publicId } from '../../src/domain/ids.ts';
import { archiveAll, dropArchived, runArchiveOnce } from '../support/archive.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/needs.ts';
import { oldEventsIn } from '../support/old-events.ts';
import { expectStatus, MAIN, newReceiver, startTestPosthorn, TEST_SETTINGS } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { createDay, startOfDay } from '../support/retention.ts';
import { type S3Fault, S3Server } from '../support/s3-server.ts';
import { startVersitygw, VERSITYGW_MISSING, type Versitygw } from '../support/versitygw.ts';

const URL_OF_ARCHIVE = 's3://archive/of/posthorn';
const DAY = dayOf(startOfDay(50));
let database: TestDatabase;
const { store, countOf, failureOf } = oldEventsIn(() => database);

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
  await createDay(database, startOfDay(50));
});

const setEnv = (env: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
};

/** Writes an archive, reads and lists it, and brings an event back. */
async function writeAndRestore(url: string): Promise<void> {
  const event = await store(50, 'delivered', { data: '{"order": "Zoë",  "n":1}' });
  await archiveAll(database, { url });
  expect(await countOf('events')).toBe(0);
  expect(await openTarget(url).list('events/')).toEqual([
    `events/day=${DAY}/manifest.json`,
    `events/day=${DAY}/part-0000.parquet`,
  ]);
  await database.query(
    `insert into posthorn.tasks (id, kind, selection, total, created_by)
     values ($1, 'restore', jsonb_build_object('eventId', $2::text), 0, 'test')`,
    [newId(Date.now()), event.id],
  );
  await runArchiveOnce(database, { url });
  const [restored] = await database.query<{ data: Buffer }>('select data from posthorn.events');
  expect(restored!.data.toString()).toBe('{"order": "Zoë",  "n":1}');
  expect(await countOf('attempts')).toBe(1);
  const [task] = await database.query("select state, error from posthorn.tasks where kind = 'restore'");
  expect(task).toEqual({ state: 'done', error: null });
}

/** The archive cannot be used with these variables. */
async function expectRefusal(url: string, env: Readonly<Record<string, string>>, message: RegExp) {
  const event = await store(50, 'delivered');
  setEnv(env);
  await dropArchived(database);
  await expect(runArchiveOnce(database, { url })).rejects.toThrow(message);
  expect(await failureOf()).toMatch(message);
  expect(await dropArchived(database)).toEqual([]);
  const [kept] = await database.query<{ id: string }>('select id from posthorn.events');
  expect(publicId('evt', kept!.id)).toBe(publicId('evt', event.id));
}

const REFUSALS: [string, string, Record<string, string>, RegExp][] = [
  ['a bucket that does not exist', 's3://none-such/x', {}, /bucket does not exist/],
  ['an unknown key', URL_OF_ARCHIVE, { AWS_ACCESS_KEY_ID: 'nobody' }, /Check AWS_ACCESS_KEY_ID/],
  ['a wrong secret', URL_OF_ARCHIVE, { AWS_SECRET_ACCESS_KEY: 'wrong' }, /Check AWS_SECRET_ACCESS_KEY/],
  ['a wrong region', URL_OF_ARCHIVE, { AWS_REGION: 'us-east-1' }, /Check AWS_REGION/],
  ['no keys', URL_OF_ARCHIVE, { AWS_ACCESS_KEY_ID: '' }, /needs AWS_ACCESS_KEY_ID/],
];
const ODD_URL = "s3://archive/of Zoë's (hooks)+1";

describe('LIF-2: an archive in S3', () => {
  let s3: S3Server;
  beforeAll(async () => {
    s3 = await S3Server.start('archive');
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await s3.stop();
  });
  beforeEach(() => {
    s3.fault = () => null;
    s3.requests.length = 0;
    setEnv(s3.env);
  });

  test.each([URL_OF_ARCHIVE, ODD_URL])(
    'is written, read back and listed, and events come back from it: %s',
    (url) => writeAndRestore(url),
  );

  test.each(REFUSALS)('%s: the error is clear, and nothing is dropped', (_what, url, env, message) =>
    expectRefusal(url, env, message),
  );

  test('the bucket can be a part of the host name', async () => {
    // Every name leads to this machine.
    const agent = new Agent({
      connect: {
        lookup: (_name, { all }, found) =>
          all ? found(null, [{ address: '127.0.0.1', family: 4 }]) : found(null, '127.0.0.1', 4),
      },
    });
    const before = getGlobalDispatcher();
    setGlobalDispatcher(agent);
    onTestFinished(async () => {
      setGlobalDispatcher(before);
      await agent.close();
    });
    setEnv({ AWS_ENDPOINT_URL_S3: `http://store.test:${s3.port}` });
    const url = 's3://archive/by-host';
    await store(50, 'delivered');
    await dropArchived(database);
    await runArchiveOnce(database, { url, pathStyle: false });
    expect(await openTarget(url, { pathStyle: false }).list('deliveries/')).toHaveLength(2);
    expect(s3.requests.map(({ key }) => key)).toContain(
      `/archive/by-host/deliveries/day=${DAY}/part-0000.parquet`,
    );
  });

  test('temporary keys come with a session token', async () => {
    const { account } = s3;
    s3.account = { ...account, sessionToken: 'a/token+of=tests' };
    onTestFinished(() => {
      s3.account = account;
    });
    const url = 's3://archive/temporary';
    await expect(openTarget(url).readText('archive.json')).rejects.toThrow(/403 InvalidToken/);
    setEnv({ AWS_SESSION_TOKEN: 'a/token+of=tests' });
    onTestFinished(() => void vi.stubEnv('AWS_SESSION_TOKEN', ''));
    await openTarget(url).putText('archive.json', '{}');
    expect(await openTarget(url).readText('archive.json')).toBe('{}');
  });

  test('lists have more names than one answer', async () => {
    // s3rver cannot continue a list, so this server answers as Amazon's does.
    const names = Array.from({ length: 2_500 }, (_, n) => `events/${String(n).padStart(4, '0')}`);
    const starts: number[] = [];
    const server = createServer((request, answer) => {
      const token = new URL(request.url!, 'http://x').searchParams.get('continuation-token');
      const start = token === null ? 0 : Number(/^after\+(\d+)\/=$/.exec(token)![1]);
      starts.push(start);
      const keys = names
        .slice(start, start + 1_000)
        .map((name) => `<Contents><Key>many/${name}</Key></Contents>`);
      const isLast = start + 1_000 >= names.length;
      const next = isLast ? '' : `<NextContinuationToken>after+${start + 1_000}/=</NextContinuationToken>`;
      answer.end(
        `<ListBucketResult><IsTruncated>${!isLast}</IsTruncated>${next}${keys.join('')}</ListBucketResult>`,
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    setEnv({ AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
    expect(await openTarget('s3://archive/many').list('events/')).toEqual(names);
    expect(starts).toEqual([0, 1_000, 2_000]);
  });

  test('a key that may read but not write: the error is clear, and nothing is dropped', async () => {
    s3.fault = ({ method }) => (method === 'PUT' ? { status: 403, code: 'AccessDenied' } : null);
    await expectRefusal('s3://archive/read-only', {}, /refuses PUT .*403 AccessDenied.* needs the rights/);
  });

  test('a store that vanishes half-way: the error is clear, and the next run completes', async () => {
    await store(50, 'delivered');
    await dropArchived(database);
    const url = 's3://archive/vanishing';
    const { port } = s3;
    await expect(
      runArchiveOnce(database, {
        url,
        wrap: (inner) => ({
          ...inner,
          async readRows(kind, range, maxRows, maxBytes) {
            if (s3.isListening) await s3.vanish();
            return inner.readRows(kind, range, maxRows, maxBytes);
          },
        }),
      }),
    ).rejects.toThrow(/cannot be reached: ECONNREFUSED/);
    expect(await dropArchived(database)).toEqual([]);
    await s3.resume(port);
    await runArchiveOnce(database, { url });
    expect(await dropArchived(database)).not.toEqual([]);
  });

  const uploads = () => s3.requests.filter(({ method, key }) => method === 'PUT' && key.endsWith('.parquet'));
  /** Fails uploads of files, except the first ones. */
  const failUploads = (fault: S3Fault, first = 0, count = Number.POSITIVE_INFINITY): void => {
    s3.fault = ({ method, key }) => {
      if (method !== 'PUT' || !key.endsWith('.parquet')) return null;
      const n = uploads().length;
      return n > first && n <= first + count ? fault : null;
    };
  };
  const exportTasks = () =>
    database.query<{ state: string }>("select state from posthorn.tasks where kind = 'archive' order by id");

  test.each<[string, S3Fault]>([
    ['507', { status: 507, code: 'InsufficientStorage' }],
    ['507 before the body is read', { status: 507, code: 'XMinioStorageFull', isEarly: true }],
    ['403 QuotaExceeded', { status: 403, code: 'QuotaExceeded' }],
  ])(
    'a full store (%s): nothing is dropped, and the export goes on when there is room',
    async (_what, fault) => {
      const url = `s3://archive/full-${newId(Date.now())}`;
      await store(50, 'delivered');
      // More than sockets buffer.
      await database.query('update posthorn.attempts set response_body = $1', [randomBytes(8_000_000)]);
      await dropArchived(database);
      failUploads(fault, 1);
      for (let run = 0; run < 2; run += 1) {
        await expect(runArchiveOnce(database, { url })).rejects.toThrow(/The store is full/);
        expect(await failureOf()).toMatch(/The store is full/);
      }
      // One file was stored. The other was sent once in each run: to repeat it at once would be in vain.
      expect(uploads()).toHaveLength(3);
      // A run adds no task, however often it fails.
      expect(await exportTasks()).toEqual([{ state: 'done' }, { state: 'failed' }]);
      expect((await dropArchived(database)).filter((name) => name.startsWith('events'))).toEqual([]);
      expect(await countOf('events')).toBe(1);

      s3.fault = () => null;
      const [stored] = uploads();
      await archiveAll(database, { url });
      expect(await failureOf()).toBeNull();
      expect(await countOf('events')).toBe(0);
      expect(uploads().filter(({ key }) => key === stored!.key)).toHaveLength(1);
      expect(new Set((await exportTasks()).map(({ state }) => state))).toEqual(new Set(['done']));
    },
  );

  test.each<[string, S3Fault]>([
    ['an overloaded store', { status: 503, code: 'SlowDown' }],
    ['a connection that is cut in the middle of an upload', 'cut'],
  ])('%s: the upload is repeated', async (_what, fault) => {
    const url = `s3://archive/slow-${newId(Date.now())}`;
    await store(50, 'delivered');
    await database.query('update posthorn.attempts set response_body = $1', [randomBytes(2_000_000)]);
    failUploads(fault, 0, 2);
    await archiveAll(database, { url });
    expect(await countOf('events')).toBe(0);
    expect(new Set(uploads().map(({ key }) => key)).size).toBe(uploads().length - 2);
  });

  test.each<[string, S3Fault, RegExp]>([
    ['an overloaded store', { status: 503, code: 'SlowDown' }, /503 SlowDown/],
    ['a connection that is always cut', 'cut', /cannot be reached/],
  ])('%s: nothing is dropped until it recovers', async (_what, fault, message) => {
    const url = `s3://archive/broken-${newId(Date.now())}`;
    await store(50, 'delivered');
    await dropArchived(database);
    failUploads(fault);
    await expect(runArchiveOnce(database, { url })).rejects.toThrow(message);
    expect(await dropArchived(database)).toEqual([]);
    s3.fault = () => null;
    await archiveAll(database, { url });
    expect(await countOf('events')).toBe(0);
  });

  test('a server says that the store is full, by an event, doctor and ls, and continues by itself', async () => {
    const url = `s3://archive/server-${newId(Date.now())}`;
    const receiver = await newReceiver();
    const env = { ...s3.env, POSTHORN_ARCHIVE_URL: url };
    failUploads({ status: 507, code: 'XMinioStorageFull' });
    const { id } = await store(50, 'delivered');
    const posthorn = await startTestPosthorn({
      database,
      env: {
        ...env,
        POSTHORN_RETENTION_EVENTS: '30',
        POSTHORN_UPKEEP_MS: '200ms',
        POSTHORN_OPERATIONAL_LEVELS_MS: '200ms',
        POSTHORN_OPERATIONAL_EVENTS_MS: '200ms',
      },
    });
    onTestFinished(() => posthorn.stop());
    const settings = { operator: true, url: receiver.url, events: ['posthorn.archive.failed'] };
    await expectStatus(posthorn.api('POST', '/v1/endpoints', settings), 201);
    await receiver.waitFor(1, 90_000);
    expect(receiver.requests[0]!.json().data).toMatchObject({
      state: 'failing',
      error: expect.stringContaining('The store is full'),
    });
    const run = async (...args: string[]): Promise<string> => {
      const child = startProcess([MAIN, ...args], {
        env: { ...TEST_SETTINGS, ...env, DATABASE_URL: database.url },
      });
      await child.ended;
      return child.output();
    };
    expect(await run('doctor')).toMatch(/The store is full.*Nothing that is not archived is deleted/);
    const listed = await run('archive', 'ls');
    expect(listed).toContain('contains nothing yet');
    expect(listed).toMatch(/2 partitions wait to be archived.*since .*The store is full/s);

    s3.fault = () => null;
    await receiver.waitFor(2, 90_000);
    expect(receiver.requests[1]!.json().data).toMatchObject({ state: 'recovered', error: null });
    const event = `/v1/events/${publicId('evt', id)}`;
    await eventually('it is archived', async () => (await posthorn.api('GET', event)).status === 410, {
      timeoutMs: 90_000,
    });
    expect(await run('archive', 'ls')).toMatch(new RegExp(`^${DAY} {2}deliveries +1 rows`, 'm'));
  });
});

describe('LIF-2: an archive in versitygw, an S3 server by others', needs(VERSITYGW_MISSING), () => {
  let server: Versitygw;
  beforeAll(async () => {
    server = await startVersitygw('archive');
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await server.stop();
  });
  beforeEach(() => setEnv(server.env));

  test.each([URL_OF_ARCHIVE, ODD_URL])(
    'is written, read back and listed, and events come back from it: %s',
    (url) => writeAndRestore(url),
  );

  test.each(REFUSALS)('%s: the error is clear, and nothing is dropped', (_what, url, env, message) =>
    expectRefusal(url, env, message),
  );
});
