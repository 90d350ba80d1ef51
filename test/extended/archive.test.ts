import { appendFile, chmod, mkdir, rename, rm, rmdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type ArchiveTarget, openTarget } from '../../src/archive/index.ts';
import { readValues } from '../../src/archive/part-reader.ts';
import { writePart } from '../../src/archive/write-part.ts';
import { type ArchiveKind, dayOf } from '../../src/domain/archive.ts';
import { newEventId, newId, publicId } from '../../src/domain/ids.ts';
import { StoreError } from '../../src/ports/store-error.ts';
import { archiveAll, dropArchived, runArchiveOnce } from '../support/archive.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { NOT_LINUX, needs } from '../support/needs.ts';
import { contentOf, filesIn, oldEventsIn, queryFiles } from '../support/old-events.ts';
import { expectStatus, MAIN, newReceiver, startTestPosthorn } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { createDay, startOfDay } from '../support/retention.ts';

/** A user id that owns nothing. */
const NOBODY = 65_534;
let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const { store, countOf, failureOf } = oldEventsIn(() => database);

describe('LIF-2: archive', () => {
  test('rows that change during the export are exported again', async () => {
    const { folder, url } = await newArchive();
    await createDay(database, startOfDay(50));
    await store(50, 'skipped');
    await dropArchived(database);
    let isFirst = true;
    await runArchiveOnce(database, {
      url,
      wrap: (inner) => ({
        ...inner,
        async recordPart(part, startedAt) {
          await inner.recordPart(part, startedAt);
          if (isFirst) await store(50, 'skipped', { atMs: startOfDay(50) + 60_000 });
          isFirst = false;
        },
      }),
    });
    expect(await queryFiles(`select count(*)::int as n from '${folder}/deliveries/*/*.parquet'`)).toEqual([
      { n: 2 },
    ]);
    expect(await dropArchived(database)).toContainEqual(expect.stringMatching(/^deliveries_/));
  });

  describe('faults: the error is clear, and nothing is dropped', () => {
    beforeEach(async () => {
      await createDay(database, startOfDay(50));
      await store(50, 'delivered');
      await dropArchived(database);
    });

    async function expectFailure(
      url: string,
      message: RegExp,
      wrap?: Parameters<typeof runArchiveOnce>[1]['wrap'],
    ) {
      await expect(runArchiveOnce(database, { url, ...(wrap && { wrap }) })).rejects.toThrow(message);
      expect(await failureOf()).toMatch(message);
      expect(await dropArchived(database)).toEqual([]);
      expect(await countOf('deliveries')).toBe(1);
    }

    test('a directory that does not exist', async () => {
      await expectFailure('file:///posthorn/missing', /directory \/posthorn\/missing .*does not exist/);
    });

    test('a URL with a host', async () => {
      await expectFailure('file://archive/x', /three slashes/);
    });

    test('a directory without the right to write', async () => {
      const { folder, url } = await newArchive();
      await chmod(folder, 0o555);
      if (process.getuid?.() !== 0) return expectFailure(url, /no permission/);
      // Root may write everywhere. Another user cannot connect to the database of the tests, so only the target is tried.
      process.seteuid!(NOBODY);
      onTestFinished(() => process.seteuid!(0));
      await expect(openTarget(url).putText('archive.json', '{}')).rejects.toThrow(/no permission/);
    });

    test('a full disk', needs(NOT_LINUX), async () => {
      const { folder, url } = await newArchive();
      // Every write to this device fails as on a full disk.
      await symlink('/dev/full', path.join(folder, 'full'));
      const target = { ...openTarget(url), url, spoolPath: async () => path.join(folder, 'full') };
      const written = writePart(target as ArchiveTarget, {
        kind: 'events',
        day: '2026-11-15',
        part: 0,
        fill: async (writer) =>
          writer.add({
            id: newEventId(Date.now()),
            tenant: 'acme',
            type: 'order.paid',
            data: null,
            deliveries: 0,
            idempotency_key: null,
            options: null,
          }),
      });
      await expect(written).rejects.toThrow(/disk is full/);
      expect(await filesIn(folder)).toEqual([]);
    });

    test('a target that vanishes half-way', async () => {
      const { folder, url } = await newArchive();
      await expectFailure(url, /does not exist|missing/, (inner) => ({
        ...inner,
        async readRows(kind, range, maxRows, maxBytes) {
          await rm(folder, { recursive: true, force: true });
          return inner.readRows(kind, range, maxRows, maxBytes);
        },
      }));
    });

    test('a directory that is unmounted half-way: the empty mount point is not the archive', async () => {
      const { folder, url } = await newArchive();
      let isMounted = true;
      const unmount = async (): Promise<void> => {
        if (!isMounted) return;
        isMounted = false;
        await rename(folder, `${folder}.disk`);
        await mkdir(folder);
      };
      onTestFinished(() => rm(`${folder}.disk`, { recursive: true, force: true }));
      await expectFailure(url, /is not the directory that it was/, (inner) => ({
        ...inner,
        // No file of the archive is open at this moment.
        async readLastTombstone() {
          await unmount();
          return inner.readLastTombstone();
        },
      }));
      expect(await filesIn(folder)).toEqual([]);
      // It is mounted again.
      await rmdir(folder);
      await rename(`${folder}.disk`, folder);
      await runArchiveOnce(database, { url });
      expect(await dropArchived(database)).toContainEqual(expect.stringMatching(/^deliveries_/));
    });

    test('a row that cannot be read', async () => {
      const { url } = await newArchive();
      await expectFailure(url, /A row of deliveries_.* cannot be read: .*missing chunk/s, (inner) => ({
        ...inner,
        readRows: () =>
          Promise.reject(new StoreError('other', 'missing chunk number 0 for toast value 16400')),
      }));
    });

    test('a partition that fails does not keep others from being archived', async () => {
      const { url } = await newArchive();
      const run = runArchiveOnce(database, {
        url,
        wrap: (inner) => ({
          ...inner,
          readRows: (kind, range, maxRows, maxBytes) =>
            kind === 'deliveries'
              ? Promise.reject(new StoreError('other', 'broken'))
              : inner.readRows(kind, range, maxRows, maxBytes),
        }),
      });
      await expect(run).rejects.toThrow(/cannot be read: .*broken/);
      expect(
        await database.query('select parent from posthorn.archived_partitions where verified_at is not null'),
      ).toEqual([{ parent: 'attempts' }]);
    });

    test('a run that ends before it records a file writes the file again', async () => {
      const { folder, url } = await newArchive();
      await expect(
        runArchiveOnce(database, {
          url,
          wrap: (inner) => ({
            ...inner,
            async recordPart() {
              throw new StoreError('other', 'not recorded');
            },
          }),
        }),
      ).rejects.toThrow('not recorded');
      // The next run writes the same file again.
      await runArchiveOnce(database, { url });
      expect(await filesIn(path.join(folder, 'deliveries'))).toHaveLength(2);
      expect(await dropArchived(database)).toContainEqual(expect.stringMatching(/^deliveries_/));
    });

    test('a file that differs when it is read back', async () => {
      const { url } = await newArchive();
      const inner = openTarget(url);
      const target = {
        url,
        spoolPath: () => inner.spoolPath(),
        put: async (name: string, file: string) => {
          await appendFile(file, 'x');
          await inner.put(name, file);
        },
        withFile: (name: string, read: (file: string) => Promise<void>) => inner.withFile(name, read),
      };
      const written = writePart(target as unknown as ArchiveTarget, {
        kind: 'events',
        day: '2026-11-15',
        part: 0,
        fill: async () => {},
      });
      await expect(written).rejects.toThrow(/cannot be read|differs from what was written/);
    });

    test('an archive of another deployment', async () => {
      const { folder, url } = await newArchive();
      await writeFile(path.join(folder, 'archive.json'), '{"deployment_id":"another"}\n');
      await expectFailure(url, /belongs to another deployment/);
    });
  });
});

const CHILD = fileURLToPath(new URL('../support/archive-child.ts', import.meta.url));

/** The public ids of all rows of a kind in an archive. */
async function idsIn(folder: string, kind: ArchiveKind): Promise<string[]> {
  const ids: string[] = [];
  for (const name of await filesIn(path.join(folder, kind)).catch(() => []))
    if (name.endsWith('.parquet'))
      for await (const group of readValues(path.join(folder, kind, name)))
        ids.push(...group.map(({ id }) => String(id)));
  return ids.sort();
}

describe('LIF-2: a killed process', () => {
  test.each([
    ...['write', 'put', 'verify', 'record', 'manifest', 'count', 'mark'].flatMap((step) => [
      [step, 1],
      [step, 3],
    ]),
    ['record', 4],
    // While rows are read, while a file is read back, while rows are counted.
    ...[1, 2, 3, 4, 5, 6].map((count) => ['rest', count]),
    ['prepare', 1],
    ['copied', 1],
    ['swap', 1],
    ['drop', 5],
    ['swap', 3],
  ] as [string, number][])(
    'before the step %s (time %i): nothing is lost, nothing is there twice',
    async (step, count) => {
      const { folder, url } = await newArchive();
      const events: string[] = [];
      for (const day of [50, 49]) {
        await createDay(database, startOfDay(day));
        for (const status of ['waiting', 'dead', 'delivered', 'skipped'] as const)
          events.push(publicId('evt', (await store(day, status)).id));
      }
      const child = startProcess([CHILD, database.url, url, step, String(count)], { env: {} });
      expect(await child.ended, child.output()).toBe('SIGKILL');
      const inDatabase = (await database.query<{ id: string }>('select id from posthorn.events')).map(
        ({ id }) => publicId('evt', id),
      );
      expect(new Set([...inDatabase, ...(await idsIn(folder, 'events'))])).toEqual(new Set(events));
      await archiveAll(database, { url });
      expect(await countOf('events')).toBe(4);
      expect(await idsIn(folder, 'events')).toEqual(events.sort());
      expect(await idsIn(folder, 'deliveries')).toHaveLength(4);
      expect(new Set(await idsIn(folder, 'attempts')).size).toBe(8);
      expect(await idsIn(folder, 'attempts')).toHaveLength(8);
      expect((await filesIn(folder)).filter((name) => name.includes('unfinished'))).toEqual([]);
    },
  );
});

describe('LIF-3: expunged data leaves the archive', () => {
  const SECRET = 'very-private-thing';
  const hasSecret = async (folder: string): Promise<boolean> => (await contentOf(folder)).includes(SECRET);

  test('a payload: the next run rewrites the file, and the rest of it stays', async () => {
    const { folder, url } = await newArchive();
    await createDay(database, startOfDay(50));
    const { id } = await store(50, 'delivered', { data: `{"a":"${SECRET}"}` });
    await store(50, 'delivered', { data: '{"b":2}' });
    await database.query('update posthorn.attempts set response_body = $1', [Buffer.from(SECRET)]);
    await database.query('update posthorn.attempts set response_body = null where delivery_id <> $1', [id]);
    await archiveAll(database, { url });
    expect(await hasSecret(folder)).toBe(true);
    await database.query("insert into posthorn.expunged (kind, id, applied_at) values ('event', $1, now())", [
      id,
    ]);
    await runArchiveOnce(database, { url });
    expect(await hasSecret(folder)).toBe(false);
    expect(await idsIn(folder, 'events')).toHaveLength(2);
    expect(await queryFiles(`select count(data)::int as n from '${folder}/events/*/*.parquet'`)).toEqual([
      { n: 1 },
    ]);
    expect(await database.query('select from posthorn.archive_parts where stale_at is not null')).toEqual([]);
  });

  test('answers to a batch with the event, in other files too', async () => {
    const { folder, url } = await newArchive();
    for (const day of [50, 49]) await createDay(database, startOfDay(day));
    const { id } = await store(50, 'delivered');
    const inOtherFile = await store(49, 'delivered');
    const alone = await store(50, 'delivered');
    const headers = JSON.stringify({ 'webhook-id': publicId('bat', newId(startOfDay(49) + 7_200_000)) });
    await database.query(
      'update posthorn.attempts set request_headers = $1, response_body = $2 where delivery_id <> $3',
      [headers, Buffer.from(SECRET), alone.deliveryId],
    );
    await database.query("update posthorn.attempts set response_body = 'kept' where delivery_id = $1", [
      alone.deliveryId,
    ]);
    await archiveAll(database, { url });
    expect(await hasSecret(folder)).toBe(true);
    // The database does not know any more which events were in the batch.
    await database.query("insert into posthorn.expunged (kind, id, applied_at) values ('event', $1, now())", [
      id,
    ]);
    for (let run = 0; run < 2; run += 1) await runArchiveOnce(database, { url });
    expect(await hasSecret(folder)).toBe(false);
    const left = await queryFiles(
      `select delivery_id, decode(response_body) as body, request_headers from '${folder}/attempts/*/*.parquet'
        where delivery_id <> '${publicId('dlv', id)}' order by delivery_id`,
    );
    expect(left).toEqual([
      { delivery_id: publicId('dlv', alone.deliveryId), body: 'kept', request_headers: '{}' },
      { delivery_id: publicId('dlv', inOtherFile.deliveryId), body: null, request_headers: headers },
    ]);
    await runArchiveOnce(database, { url });
    expect(await database.query('select from posthorn.archive_parts where stale_at is not null')).toEqual([]);
  });

  test('a tenant: all of its rows, and operational events about it', async () => {
    const { folder, url } = await newArchive();
    await createDay(database, startOfDay(50));
    await store(50, 'delivered', { tenant: SECRET });
    const other = await store(50, 'delivered', { tenant: 'other' });
    await archiveAll(database, { url });
    await database.query("insert into posthorn.expunged (kind, id) values ('tenant', $1)", [SECRET]);
    const [part] = await database.query('select tenants from posthorn.archive_parts limit 1');
    expect(part).toEqual({ tenants: ['other'] });
    await runArchiveOnce(database, { url });
    expect(await hasSecret(folder)).toBe(false);
    for (const kind of ['events', 'deliveries', 'attempts'] as const)
      expect(await idsIn(folder, kind)).toHaveLength(1);
    expect(await idsIn(folder, 'events')).toEqual([publicId('evt', other.id)]);
    // An empty file is still one that DuckDB reads.
    await database.query("insert into posthorn.expunged (kind, id) values ('tenant', 'other')");
    await runArchiveOnce(database, { url });
    expect(await queryFiles(`select count(*)::int as n from '${folder}/events/*/*.parquet'`)).toEqual([
      { n: 0 },
    ]);
  });
});

describe('LIF-2: posthorn archive', () => {
  async function run(...args: string[]): Promise<{ code: unknown; out: string }> {
    const { ended, output } = startProcess([MAIN, 'archive', ...args], { env: {} });
    return { code: await ended, out: output() };
  }

  test('lists, verifies and searches an archive without a server', async () => {
    const { folder, url } = await newArchive();
    await createDay(database, startOfDay(50));
    const { id } = await store(50, 'delivered', { data: '{"n": 1}' });
    await store(50, 'dead', { tenant: 'other' });
    await archiveAll(database, { url });
    const day = dayOf(startOfDay(50));
    const at = ['--archive-url', url];

    const listed = await run('ls', ...at);
    expect(listed.out).toMatch(new RegExp(`^${day} {2}events +2 rows`, 'm'));
    expect(JSON.parse((await run('ls', '--json', '--kind', 'events', ...at)).out)).toMatchObject([
      { day, rows: 2 },
    ]);
    expect(await run('verify', ...at)).toEqual({
      code: 0,
      out: expect.stringContaining(`✓ events ${day}: 2 rows`),
    });
    const found = await run('query', '--event', publicId('evt', id), ...at);
    expect(JSON.parse(found.out)).toMatchObject({
      id: publicId('evt', id),
      tenant: 'acme',
      data: '{"n": 1}',
    });
    expect((await run('query', '--day', day, '--tenant', 'other', ...at)).out).toContain('"tenant":"other"');
    const attempts = await run('query', '--event', publicId('evt', id), '--kind', 'attempts', ...at);
    expect(JSON.parse(attempts.out)).toMatchObject({ status_code: 500, outcome: 'retry' });
    expect((await run('query', '--day', '2020-01-01', ...at)).code).toBe(1);
    expect((await run('query', ...at)).out).toContain('--day');
    expect((await run('query', '--day', 'tomorrow', ...at)).code).toBe(2);

    await appendFile(path.join(folder, `events/day=${day}/part-0000.parquet`), 'x');
    await writeFile(path.join(folder, `attempts/day=${day}/part-0007.parquet`), 'x');
    const verified = await run('verify', ...at);
    expect(verified.code).toBe(1);
    expect(verified.out).toMatch(/✗ events\/day=.*part-0000/);
    expect(verified.out).toContain(`attempts/day=${day}/part-0007.parquet is not in the manifest`);
    expect(await run('ls', '--archive-url', 'file:///posthorn/missing')).toEqual({
      code: 1,
      out: expect.stringContaining('does not exist'),
    });
    expect((await run('ls')).out).toContain('POSTHORN_ARCHIVE_URL is not set');
  });

  test('restores by a server, and an operational event tells when the archive fails', async () => {
    const { url, folder } = await newArchive();
    const receiver = await newReceiver();
    const env = {
      POSTHORN_ARCHIVE_URL: url,
      POSTHORN_RETENTION_EVENTS: '30',
      POSTHORN_UPKEEP_MS: '200ms',
      POSTHORN_OPERATIONAL_LEVELS_MS: '200ms',
      POSTHORN_OPERATIONAL_EVENTS_MS: '200ms',
    };
    await writeFile(path.join(folder, 'archive.json'), '{"deployment_id":"another"}');
    const posthorn = await startTestPosthorn({ database, env });
    onTestFinished(() => posthorn.stop());
    const settings = { operator: true, url: receiver.url, events: ['posthorn.*'] };
    await expectStatus(posthorn.api('POST', '/v1/endpoints', settings), 201);
    await createDay(database, startOfDay(50));
    const { id } = await store(50, 'delivered');
    await receiver.waitFor(1);
    expect(receiver.requests[0]!.json()).toMatchObject({
      type: 'posthorn.archive.failed',
      data: { state: 'failing', error: expect.stringContaining('another deployment') },
    });
    expect(await countOf('deliveries')).toBeGreaterThan(0);
    await rm(path.join(folder, 'archive.json'));
    await receiver.waitFor(2);
    expect(receiver.requests[1]!.json().data).toMatchObject({ state: 'recovered', error: null });
    const event = `/v1/events/${publicId('evt', id)}`;
    await eventually('it is archived', async () => (await posthorn.api('GET', event)).status === 410);
    const restore = startProcess([MAIN, 'archive', 'restore', '--event', publicId('evt', id)], {
      env: { POSTHORN_PUBLIC_URL: posthorn.url, POSTHORN_ADMIN_KEY: posthorn.key, POSTHORN_ARCHIVE_URL: url },
    });
    expect(await restore.ended, restore.output()).toBe(0);
    expect(restore.stdout()).toMatch(/^Restored 3 rows of evt_/);
    await expectStatus(posthorn.api('GET', event), 200);
  });
});
