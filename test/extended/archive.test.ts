import { appendFile, chmod, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type ArchiveTarget, openTarget } from '../../src/archive/index.ts';
import { writePart } from '../../src/archive/write-part.ts';
import { newEventId, newId } from '../../src/domain/ids.ts';
import { StoreError } from '../../src/ports/store-error.ts';
import { dropArchived, newArchive, runArchiveOnce } from '../support/archive.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { NOT_LINUX, needs } from '../support/needs.ts';
import { createDay, type OldEventOptions, startOfDay, storeOldEvent } from '../support/retention.ts';

const IS_ROOT = process.getuid?.() === 0 ? 'root may write everywhere' : null;
const endpointId = newId(Date.now());
let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const store = (daysAgo: number, status: OldEventOptions['status'], more: Partial<OldEventOptions> = {}) =>
  storeOldEvent(database, { status, endpointId, atMs: startOfDay(daysAgo) + 3_600_000, ...more });
const countOf = async (table: string): Promise<number> =>
  (await database.query<{ n: number }>(`select count(*)::int as n from posthorn.${table}`))[0]!.n;
const failureOf = async (): Promise<string | null> =>
  (await database.query<{ error: string | null }>('select error from posthorn.archive_state'))[0]!.error;
const filesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();

/** Runs SQL over the files of an archive, as a person would. */
async function query(sql: string): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowObjectsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

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
    expect(await query(`select count(*)::int as n from '${folder}/deliveries/*/*.parquet'`)).toEqual([
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

    test('a directory without the right to write', needs(IS_ROOT), async () => {
      const { folder, url } = await newArchive();
      await chmod(folder, 0o500);
      await expectFailure(url, /no permission/);
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

    test('a row that cannot be read', async () => {
      const { url } = await newArchive();
      await expectFailure(url, /A row of deliveries_.* cannot be read: .*missing chunk/s, (inner) => ({
        ...inner,
        readRows: () =>
          Promise.reject(new StoreError('other', 'missing chunk number 0 for toast value 16400')),
      }));
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
