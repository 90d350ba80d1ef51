/** LIF-2: an export rests, so that events keep their speed. `src/archive/pace.test.ts` checks how long. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fillExpired } from '../../bench/fill-expired.ts';
import type { ExportPace } from '../../src/archive/index.ts';
import { newId } from '../../src/domain/ids.ts';
import { createPostgresArchiveStore } from '../../src/postgres/archive-store.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { WHOLE_TENANT } from '../../src/postgres/queries/expunge-tenant.ts';
import { archiveAll, dropArchived, newRestingPace, runArchiveOnce } from '../support/archive.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { filesIn, oldEventsIn } from '../support/old-events.ts';
import { MAIN } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { createDay, startOfDay } from '../support/retention.ts';

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const { store, failureOf, verifiedPartitions } = oldEventsIn(() => database);
const tasks = () =>
  database.query<{ state: string; done: number }>(
    "select state, done from posthorn.tasks where kind = 'archive' order by created_at",
  );

describe('LIF-2: the archive is behind', () => {
  const isBehind = async (days: number): Promise<boolean> => {
    const opened = openDatabase({
      connectionString: database.url,
      apiConnections: 1,
      dispatchConnections: 1,
      onIdleError: () => {},
    });
    try {
      const kinds = { events: days, deliveries: days, attempts: days };
      return await createPostgresArchiveStore(opened).isBehind(kinds);
    } finally {
      await opened.close();
    }
  };

  test('if a younger partition of the same kind has expired too', async () => {
    for (const day of [50, 40]) await createDay(database, startOfDay(day));
    expect(await isBehind(30), 'nothing is requested').toBe(false);
    // One partition of the deliveries and one of the attempts.
    await dropArchived(database);
    expect(await isBehind(45)).toBe(false);
    expect(await isBehind(30)).toBe(true);
    expect(await isBehind(0), 'kept forever').toBe(false);
    await database.query('update posthorn.archived_partitions set verified_at = now()');
    expect(await isBehind(30)).toBe(false);
  });

  test('if a partition has waited for a day', async () => {
    await createDay(database, startOfDay(50));
    await dropArchived(database);
    expect(await isBehind(30)).toBe(false);
    await database.query(
      "update posthorn.archived_partitions set requested_at = now() - interval '25 hours' where parent = 'attempts'",
    );
    expect(await isBehind(30)).toBe(true);
  });
});

describe('LIF-2: an export that rests', () => {
  beforeEach(async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'delivered');
    await dropArchived(database);
  });

  test('holds no snapshot, no lock on a table and no statement', async () => {
    const { url } = await newArchive();
    const held: unknown[] = [];
    let rests = 0;
    const pace = newRestingPace({}, (task) => {
      rests += 1;
      const looking = database.query(
        `select a.state, a.query, l.mode, l.relation::regclass::text as relation from pg_stat_activity a
           left join pg_locks l on l.pid = a.pid and l.locktype = 'relation'
          where a.datname = current_database() and a.backend_type = 'client backend' and a.pid <> pg_backend_pid()
            and (a.state = 'active' or a.backend_xmin is not null or a.backend_xid is not null or l.relation is not null)`,
      );
      void looking.then((rows) => held.push(...rows)).finally(task);
    });
    await runArchiveOnce(database, { url, pace });
    expect(held).toEqual([]);
    // Rows are read, read back and counted for each of two partitions.
    expect(rests).toBeGreaterThanOrEqual(6);
    expect(await verifiedPartitions()).toHaveLength(2);
  });

  test.each([1, 2, 3, 4, 5, 6, 7])(
    'ends at once if it is stopped (rest %i), and the next run completes it',
    async (count) => {
      const { folder, url } = await newArchive();
      await database.query(
        "update posthorn.archive_state set error = 'The disk is full.', failed_at = now()",
      );
      let left = count;
      // A rest ends only if the pace is stopped.
      const pace: ExportPace = newRestingPace({}, (task) => {
        left -= 1;
        if (left > 0) setImmediate(task);
        else setImmediate(() => pace.stop());
      });
      expect(await runArchiveOnce(database, { url, pace })).toBe(true);
      expect(pace.isStopped).toBe(true);
      // It is no failure, and no success either.
      expect(await failureOf()).toBe('The disk is full.');
      expect((await tasks()).map(({ state }) => state)).not.toContain('failed');
      expect(await readdir(path.join(folder, '.unfinished'))).toEqual([]);
      expect(await verifiedPartitions()).not.toHaveLength(2);

      await runArchiveOnce(database, { url });
      expect(await failureOf()).toBeNull();
      expect(await verifiedPartitions()).toHaveLength(2);
      expect((await tasks()).map(({ state }) => state)).toEqual(['done', 'done']);
      const files = await filesIn(folder);
      expect(files.filter((name) => name.endsWith('.parquet'))).toHaveLength(2);
    },
  );
});

test('LIF-2: a restore does not wait for the end of an export', async () => {
  const { url } = await newArchive();
  await createDay(database, startOfDay(60));
  const { id } = await store(60, 'skipped');
  await archiveAll(database, { url });
  // One partition with two days, and so with two files.
  for (const table of ['deliveries', 'attempts', 'events'])
    await database.query('select posthorn.create_partition($1, to_timestamp($2), to_timestamp($3))', [
      table,
      startOfDay(50) / 1000,
      startOfDay(48) / 1000,
    ]);
  for (const day of [50, 49]) await store(day, 'skipped');
  await dropArchived(database);
  const found: unknown[] = [];
  await runArchiveOnce(database, {
    url,
    wrap: (inner) => ({
      ...inner,
      async recordPart(part, startedAt) {
        await inner.recordPart(part, startedAt);
        found.push(await database.query('select id from posthorn.events where id = $1', [id]));
        if (found.length === 1)
          await database.query(
            "insert into posthorn.tasks (id, kind, state, selection, total, created_by) values ($1, 'restore', 'queued', $2, 0, 'test')",
            [newId(Date.now()), JSON.stringify({ ...WHOLE_TENANT, since: startOfDay(60) })],
          );
      },
    }),
  });
  expect(found.slice(0, 2)).toEqual([[], [{ id }]]);
});

test('LIF-2: the archive process of a server rests and stops at once; the command of a person does not rest', async () => {
  const { folder, url } = await newArchive();
  const partition = await fillExpired(database.query, { rows: 60_000, dataBytes: 300 }, () => {});
  await database.query(
    `insert into posthorn.archived_partitions (partition, parent, from_at, to_at)
     select name, parent, from_at, to_at from posthorn.partitions where name = $1`,
    [partition],
  );
  // After each 5,000 rows it rests for seconds.
  const env = { POSTHORN_ARCHIVE_URL: url, POSTHORN_ARCHIVE_MAX_BUSY: '0.01', DATABASE_URL: database.url };
  const child = fork(MAIN, ['archive', 'run'], {
    env: { PATH: process.env.PATH ?? '', ...env },
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'close');
  await eventually('the first rows are read', async () => ((await tasks())[0]?.done ?? 0) > 0, {
    timeoutMs: 60_000,
  });
  child.kill('SIGTERM');
  expect(await ended).toEqual([1, null]);
  // If the process had been in the middle of its rest for three seconds, it would have ended without cleaning up.
  expect(await readdir(path.join(folder, '.unfinished'))).toEqual([]);
  expect(await verifiedPartitions()).toEqual([]);

  // With rests it would take two minutes.
  const { ended: done, output } = startProcess([MAIN, 'archive', 'run'], { env });
  expect(await done, output()).toBe(0);
  expect(await verifiedPartitions()).toEqual([partition]);
});
