import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openTarget, readManifests, verifyDay } from '../../src/archive/index.ts';
import { readValues } from '../../src/archive/part-reader.ts';
import { dayOf } from '../../src/domain/archive.ts';
import { newEventId, newId, parsePublicId, publicId, type Uuid } from '../../src/domain/ids.ts';
import type { ArchiveStore } from '../../src/ports/archive-store.ts';
import { StoreError } from '../../src/ports/store-error.ts';
import { ADVISORY_LOCKS } from '../../src/postgres/advisory-locks.ts';
import { WHOLE_TENANT } from '../../src/postgres/queries/expunge-tenant.ts';
import { archiveAll, dropArchived, dropWithoutArchive, runArchiveOnce } from '../support/archive.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { contentOf, filesIn, oldEventsIn } from '../support/old-events.ts';
import {
  createEndpoint,
  expectStatus,
  MAIN,
  newReceiver,
  startTestPosthorn,
  untilDeliveries,
} from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { createDay, dropPartitions, keepDays, startOfDay } from '../support/retention.ts';

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const { store, verifiedPartitions } = oldEventsIn(() => database);

/** What `posthorn archive verify` finds wrong. */
async function problemsOf(url: string): Promise<string[]> {
  const target = openTarget(url);
  const problems: string[] = [];
  for (const manifest of await readManifests(target)) problems.push(...(await verifyDay(target, manifest)));
  return problems;
}

/** Asks for the restore of a day. The next run of the archive process does it. */
async function orderRestore(daysAgo: number): Promise<Uuid> {
  const id = newId(Date.now());
  await database.query(
    "insert into posthorn.tasks (id, kind, state, selection, total, created_by) values ($1, 'restore', 'queued', $2, 0, 'test')",
    [id, JSON.stringify({ ...WHOLE_TENANT, since: startOfDay(daysAgo) })],
  );
  return id;
}
const taskOf = async (id: Uuid) =>
  (
    await database.query<{ state: string; error: string | null }>(
      'select state, error from posthorn.tasks where id = $1',
      [id],
    )
  )[0]!;

/** Holds up every statement that inserts into this table, until `release` is called. */
async function holdUpInserts(
  table: string,
): Promise<{ release(): Promise<unknown>; waiting(): Promise<number> }> {
  await database.query(
    `create function public.hold_up() returns trigger language plpgsql as
       $$ begin perform pg_advisory_xact_lock(1); return new; end $$`,
  );
  await database.query(
    `create trigger hold_up before insert on posthorn.${table} for each row execute function public.hold_up()`,
  );
  const blocker = new pg.Client({ connectionString: database.url });
  await blocker.connect();
  onTestFinished(() => blocker.end());
  await blocker.query('select pg_advisory_lock(1)');
  return {
    release: () => blocker.query('select pg_advisory_unlock(1)'),
    waiting: async () =>
      (
        await database.query(
          "select from pg_stat_activity where wait_event = 'advisory' and datname = current_database()",
        )
      ).length,
  };
}

/** As if the process had lost the database before it marked the partition as verified. */
const withoutMark = (inner: ArchiveStore): ArchiveStore => ({
  ...inner,
  markVerified: () => Promise.reject(new StoreError('unavailable', 'the database is gone')),
});

describe('LIF-2: files that are lost before their partition was verified', () => {
  beforeEach(async () => {
    await createDay(database, startOfDay(50));
    await store(50, 'delivered');
    await dropArchived(database);
  });

  test('an archive without its archive.json is refused if files were written to it', async () => {
    const { folder, url } = await newArchive();
    await expect(runArchiveOnce(database, { url, wrap: withoutMark })).rejects.toThrow('database is gone');
    const owner = await readFile(path.join(folder, 'archive.json'), 'utf8');
    // The disk is not mounted: the directory is there, and empty.
    for (const name of await readdir(folder)) await rm(path.join(folder, name), { recursive: true });

    await expect(runArchiveOnce(database, { url })).rejects.toThrow(/has no archive\.json.*Mount it/);
    expect(await filesIn(folder)).toEqual([]);
    expect(await dropArchived(database)).toEqual([]);

    // As the message advises if the files are lost: all of them are written again.
    await writeFile(path.join(folder, 'archive.json'), owner);
    await runArchiveOnce(database, { url });
    expect(await verifiedPartitions()).toHaveLength(2);
    expect(await filesIn(folder)).toHaveLength(5);
    expect(await problemsOf(url)).toEqual([]);
  });

  test.each(['missing', 'truncated'])('a %s file is written again', async (damage) => {
    const { folder, url } = await newArchive();
    await expect(runArchiveOnce(database, { url, wrap: withoutMark })).rejects.toThrow('database is gone');
    const name = (await filesIn(folder)).find((each) => each.endsWith('.parquet'))!;
    const content = await readFile(path.join(folder, name));
    if (damage === 'missing') await rm(path.join(folder, name));
    else await writeFile(path.join(folder, name), content.subarray(0, 50));
    await runArchiveOnce(database, { url });
    expect(await readFile(path.join(folder, name))).toEqual(content);
    expect(await problemsOf(url)).toEqual([]);
  });

  test('a partition with files in another archive is not verified', async () => {
    const [first, second] = [await newArchive(), await newArchive()];
    await expect(runArchiveOnce(database, { url: first.url, wrap: withoutMark })).rejects.toThrow(
      'database is gone',
    );
    await expect(runArchiveOnce(database, { url: second.url })).rejects.toThrow(
      `is in the archive ${first.url}`,
    );
    await runArchiveOnce(database, { url: first.url });
    expect(await problemsOf(first.url)).toEqual([]);
  });
});

describe('LIF-2: a server without POSTHORN_ARCHIVE_URL beside servers that have it', () => {
  const archiveOff = async (env: Record<string, string>) => {
    const { ended, output } = startProcess([MAIN, 'archive', 'off'], {
      env: { DATABASE_URL: database.url, ...env },
    });
    return { code: await ended, out: output() };
  };

  test('it drops only what the others have archived, until `posthorn archive off`', async () => {
    const { url } = await newArchive();
    for (const day of [50, 49]) {
      await createDay(database, startOfDay(day));
      await store(day, 'delivered');
    }
    // The other server asks for the export.
    expect(await dropArchived(database)).toEqual([]);
    // A server of an earlier version would not even ask.
    await expect(dropPartitions(database, { days: keepDays(30) })).rejects.toThrow(/is not archived/);
    expect(await dropWithoutArchive(database)).toEqual([]);
    await runArchiveOnce(database, { url });
    expect(await dropWithoutArchive(database)).toHaveLength(2);

    expect(await archiveOff({ POSTHORN_ARCHIVE_URL: url })).toMatchObject({
      code: 1,
      out: expect.stringContaining('still set'),
    });
    expect(await dropWithoutArchive(database)).toEqual([]);
    expect(await archiveOff({})).toMatchObject({ code: 0 });
    const dropped = await dropWithoutArchive(database);
    expect(dropped.filter((name) => !name.includes('kept'))).toHaveLength(4);
  });
});

describe('LIF-3: a tenant that is expunged while its partition is exported', () => {
  const SECRET = 'very-private-thing';

  test.each(['a run that continues', 'a run that is killed when it has forgotten the files'])(
    'leaves no file behind: %s',
    async (how) => {
      const { folder, url } = await newArchive();
      await createDay(database, startOfDay(50));
      await store(50, 'skipped', { tenant: SECRET });
      await dropArchived(database);
      let isFirst = true;
      const run = runArchiveOnce(database, {
        url,
        wrap: (inner) => ({
          ...inner,
          async recordPart(part, startedAt) {
            await inner.recordPart(part, startedAt);
            if (!isFirst) return;
            isFirst = false;
            await database.query("insert into posthorn.expunged (kind, id) values ('tenant', $1)", [SECRET]);
            for (const table of ['events', 'deliveries', 'attempts'])
              await database.query(`delete from posthorn.${table}`);
          },
          async forgetParts(partition, days) {
            await inner.forgetParts(partition, days);
            if (how !== 'a run that continues') throw new StoreError('unavailable', 'killed');
          },
        }),
      });
      if (how === 'a run that continues') await run;
      else await expect(run).rejects.toThrow('killed');
      await runArchiveOnce(database, { url });
      expect(await verifiedPartitions()).toHaveLength(2);
      expect(await contentOf(folder)).not.toContain(SECRET);
      expect(await problemsOf(url)).toEqual([]);
    },
  );
});

describe('LIF-3: expunged data in operational events', () => {
  const SECRET = 'very-private-thing';

  test('a restore leaves it out, and a rewritten file does not contain it', async () => {
    const { folder, url } = await newArchive();
    await createDay(database, startOfDay(50));
    const add = async (data: unknown, type = 'posthorn.notice', options: unknown = null) => {
      const id = newEventId(startOfDay(50) + 1000);
      await database.query(
        'insert into posthorn.events (id, tenant, type, data, deliveries, options) values ($1, $2, $3, $4, 0, $5)',
        [id, 'posthorn', type, Buffer.from(JSON.stringify(data)), options && JSON.stringify(options)],
      );
      return id;
    };
    await database.query(
      `insert into posthorn.endpoints (id, tenant, url, config, version) values ($1, 'posthorn', 'http://127.0.0.1/', '{"operator":true}', 1)`,
      [newId(Date.now())],
    );
    const text = `${SECRET} orders (hooks.example.com)`;
    await add({ groups: [{ type: 'posthorn.circuit.opened', items: [{ tenant: SECRET, text }] }] });
    await add({ endpoints: [{ tenant: SECRET, api_version: SECRET }] }, 'posthorn.version.sunset');
    await add({ oldest: { tenant: SECRET } }, 'posthorn.queue.age');
    const payload = await add({ a: 1 }, 'order.paid', { schema_errors: [{ path: `/${SECRET}` }] });
    await archiveAll(database, { url });
    expect(await contentOf(folder)).toContain(SECRET);
    expect(await database.query('select from posthorn.events')).toEqual([]);

    await database.query(
      "insert into posthorn.expunged (kind, id, applied_at) values ('tenant', $1, now()), ('event', $2, now())",
      [SECRET, payload],
    );
    const task = await orderRestore(50);
    await runArchiveOnce(database, { url });
    expect(await taskOf(task)).toEqual({ state: 'done', error: null });
    const restored = await database.query<{ text: string }>(
      "select concat(convert_from(data, 'UTF8'), options) as text from posthorn.events",
    );
    expect(restored).toHaveLength(4);
    expect(restored.map((row) => row.text).join()).not.toContain(SECRET);
    expect(await contentOf(folder)).not.toContain(SECRET);
  });
});

describe('LIF-3: an event that is expunged while it is restored', () => {
  const SECRET = 'very-private-thing';

  test.each(['events', 'attempts'])('stays expunged if its %s are being inserted', async (kind) => {
    const { url } = await newArchive();
    const posthorn = await startTestPosthorn({ database });
    onTestFinished(() => posthorn.stop());
    await createDay(database, startOfDay(50));
    const { id } = await store(50, 'delivered', { data: JSON.stringify(SECRET) });
    await database.query('update posthorn.attempts set response_body = $1', [Buffer.from(SECRET)]);
    await archiveAll(database, { url });
    const task = await orderRestore(50);

    // After it has read the tombstones and before it commits.
    const { release, waiting } = await holdUpInserts(kind);
    const run = runArchiveOnce(database, { url });
    await eventually('the restore waits', async () => (await waiting()) === 1);
    const expunged = expectStatus(posthorn.api('DELETE', `/v1/events/${publicId('evt', id)}/payload`), 204);
    // It waits for the restore, or it has ended.
    await Promise.race([expunged, eventually('the expunge waits', async () => (await waiting()) === 2)]);
    await release();
    await Promise.all([run, expunged]);
    expect(await taskOf(task)).toEqual({ state: 'done', error: null });
    const left = await database.query(
      `select from posthorn.events where data is not null
        union all select from posthorn.attempts where response_body is not null`,
    );
    expect(left).toEqual([]);
  });
});

test('LIF-2: a delivery that is replayed while it is restored again is not in the history and in the queue', async () => {
  const { url } = await newArchive();
  const posthorn = await startTestPosthorn({ database });
  onTestFinished(() => posthorn.stop());
  const receiver = await newReceiver();
  const endpoint = await createEndpoint(posthorn, { tenant: 'acme', url: receiver.url, paused: true });
  await createDay(database, startOfDay(50));
  const endpointId = parsePublicId('ep', endpoint.id)!;
  const { id, deliveryId } = await store(50, 'delivered', { endpointId });
  await archiveAll(database, { url });
  await orderRestore(50);
  await runArchiveOnce(database, { url });

  const again = await orderRestore(50);
  const { release, waiting } = await holdUpInserts('deliveries');
  const run = runArchiveOnce(database, { url });
  await eventually('the restore waits', async () => (await waiting()) === 1);
  await expectStatus(posthorn.api('POST', `/v1/deliveries/${publicId('dlv', deliveryId)}/replay`), 202);
  await release();
  await run;
  expect(await taskOf(again)).toEqual({ state: 'done', error: null });
  expect(await database.query('select id from posthorn.queue')).toEqual([{ id: deliveryId }]);
  expect(await database.query('select id from posthorn.deliveries')).toEqual([]);
  await expectStatus(posthorn.api('PATCH', `/v1/endpoints/${endpoint.id}`, { paused: false }), 200);
  await untilDeliveries(posthorn, publicId('evt', id), 'delivered');
  expect(receiver.requests).toHaveLength(1);
});

test('LIF-3: events stay until their attempts are archived with the tenant of the event', async () => {
  const { folder, url } = await newArchive();
  await createDay(database, startOfDay(50));
  await store(50, 'delivered');
  const wrap = (inner: ArchiveStore): ArchiveStore => ({
    ...inner,
    readRows: (kind, range, maxRows, maxBytes) =>
      kind === 'attempts'
        ? Promise.reject(new StoreError('other', 'broken'))
        : inner.readRows(kind, range, maxRows, maxBytes),
  });
  for (let round = 0; round < 4; round += 1) {
    await dropArchived(database);
    await expect(runArchiveOnce(database, { url, wrap })).rejects.toThrow('broken');
  }
  expect(await database.query('select from posthorn.deliveries')).toEqual([]);
  expect(await database.query('select from posthorn.events')).toHaveLength(1);
  await expect(
    database.query(
      "select posthorn.prepare_partition_swap(name, now()) from posthorn.partitions where parent = 'events' and not kept and to_at < now() - interval '40 days'",
    ),
  ).rejects.toThrow(/attempts of .* are not archived/);

  await archiveAll(database, { url });
  expect(await database.query('select from posthorn.events')).toEqual([]);
  const [name] = (await filesIn(folder)).filter((each) => /^attempts.*parquet$/.test(each));
  for await (const rows of readValues(path.join(folder, name!)))
    expect(rows.map(({ tenant }) => tenant)).toEqual(['acme']);
});

describe('LIF-2: a damaged file', () => {
  const damage = async (folder: string, daysAgo: number) => {
    const file = path.join(folder, `events/day=${dayOf(startOfDay(daysAgo))}/part-0000.parquet`);
    await writeFile(file, (await readFile(file)).subarray(0, 50));
  };

  test('does not keep other files from being rewritten, nor partitions from being archived', async () => {
    const { folder, url } = await newArchive();
    for (const day of [50, 49]) {
      await createDay(database, startOfDay(day));
      await store(day, 'delivered', { tenant: 'gone' });
    }
    await archiveAll(database, { url });
    await damage(folder, 50);
    await database.query(
      "insert into posthorn.expunged (kind, id, applied_at) values ('tenant', 'gone', now())",
    );
    await createDay(database, startOfDay(48));
    await store(48, 'delivered');
    await dropArchived(database);

    await expect(runArchiveOnce(database, { url })).rejects.toThrow(/part-0000\.parquet cannot be rewritten/);
    const [failure] = await database.query<{ error: string }>('select error from posthorn.archive_state');
    expect(failure!.error).toContain('cannot be rewritten');
    const stale = await database.query(
      'select kind from posthorn.archive_parts where stale_at is not null and day < $1',
      [dayOf(startOfDay(48))],
    );
    expect(stale).toEqual([{ kind: 'events' }]);
    expect(await dropArchived(database)).toContainEqual(expect.stringMatching(/^deliveries_/));
  });

  test('ends the restore that needs it, and no other', async () => {
    const { folder, url } = await newArchive();
    for (const day of [50, 49]) {
      await createDay(database, startOfDay(day));
      await store(day, 'delivered');
    }
    await archiveAll(database, { url });
    await damage(folder, 50);
    const [broken, other] = [await orderRestore(50), await orderRestore(49)];
    await runArchiveOnce(database, { url });
    expect(await taskOf(broken)).toEqual({
      state: 'failed',
      error: expect.stringMatching(/part-0000\.parquet cannot be read/),
    });
    expect(await taskOf(other)).toEqual({ state: 'done', error: null });
  });

  test('a download from S3 that breaks is tried again, and is a clear error in the end', async () => {
    let breaks = 1;
    const server = createServer((_, answer) => {
      answer.writeHead(200, { 'content-length': 4 });
      if (breaks-- <= 0) answer.end('PAR1');
      else answer.write('P', () => answer.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    const target = openTarget('s3://bucket/prefix', {
      env: {
        AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        AWS_ACCESS_KEY_ID: 'key',
        AWS_SECRET_ACCESS_KEY: 'secret',
      },
    });
    expect(await target.withFile('a', (file) => readFile(file, 'utf8'))).toBe('PAR1');
    breaks = 10;
    await expect(target.withFile('a', readFile)).rejects.toThrow(/download of a from s3.* broke/);
  });
});

test.each(['replacePart', 'listParts', 'clearStale'] as const)(
  'LIF-3: a run that is killed before %s of a rewritten file: the next one completes the rewrite',
  async (step) => {
    const { folder, url } = await newArchive();
    await createDay(database, startOfDay(50));
    await store(50, 'delivered', { tenant: 'very-private-thing' });
    await store(50, 'delivered');
    await archiveAll(database, { url });
    await database.query(
      "insert into posthorn.expunged (kind, id, applied_at) values ('tenant', 'very-private-thing', now())",
    );
    const wrap = (inner: ArchiveStore): ArchiveStore => ({
      ...inner,
      [step]: () => Promise.reject(new StoreError('unavailable', 'killed')),
    });
    await expect(runArchiveOnce(database, { url, wrap })).rejects.toThrow('killed');
    await runArchiveOnce(database, { url });
    expect(await database.query('select from posthorn.archive_parts where stale_at is not null')).toEqual([]);
    expect(await contentOf(folder)).not.toContain('very-private-thing');
    expect(await problemsOf(url)).toEqual([]);
  },
);

test('LIF-2: a process that lost its lock records and replaces nothing', async () => {
  const { folder, url } = await newArchive();
  await createDay(database, startOfDay(50));
  await store(50, 'delivered');
  await dropArchived(database);
  const loseLock = () =>
    database.query(
      `select pg_terminate_backend(pid) from pg_locks
        where locktype = 'advisory' and ((classid::bigint << 32) | objid::bigint) = $1
          and database = (select oid from pg_database where datname = current_database())`,
      [ADVISORY_LOCKS.archive],
    );
  for (const step of ['readRows', 'recordPart', 'markVerified'] as const) {
    const wrap = (inner: ArchiveStore): ArchiveStore => ({
      ...inner,
      [step]: async (...args: unknown[]) => {
        await loseLock();
        return (inner[step] as (...all: unknown[]) => Promise<unknown>)(...args);
      },
    });
    await expect(runArchiveOnce(database, { url, wrap })).rejects.toThrow(/lost its lock/);
    if (step === 'readRows') expect(await filesIn(folder)).toEqual(['archive.json']);
    if (step !== 'markVerified')
      expect(await database.query('select from posthorn.archive_parts')).toEqual([]);
    expect(await verifiedPartitions()).toEqual([]);
  }
  await runArchiveOnce(database, { url });
  expect(await verifiedPartitions()).toHaveLength(2);
  // Nor does it replace a file with expunged data: another process may have replaced it.
  await database.query(
    "insert into posthorn.expunged (kind, id, applied_at) values ('tenant', 'acme', now())",
  );
  const before = await contentOf(folder);
  const wrap = (inner: ArchiveStore): ArchiveStore => ({
    ...inner,
    async readTombstones(...args) {
      await loseLock();
      return inner.readTombstones(...args);
    },
  });
  await expect(runArchiveOnce(database, { url, wrap })).rejects.toThrow(/lost its lock/);
  expect(await contentOf(folder)).toBe(before);
  await runArchiveOnce(database, { url });
  expect(await contentOf(folder)).not.toBe(before);
  expect(await problemsOf(url)).toEqual([]);
});

test('LIF-2: a process that gets no processor for longer than ten seconds keeps its lock', async () => {
  const { url } = await newArchive();
  await createDay(database, startOfDay(50));
  await store(50, 'delivered');
  await dropArchived(database);
  let hasWaited = false;
  const wrap = (inner: ArchiveStore): ArchiveStore => ({
    ...inner,
    async recordPart(...args) {
      // Its timers do not run meanwhile, as if other processes used the processor.
      if (!hasWaited) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 12_000);
      hasWaited = true;
      return inner.recordPart(...args);
    },
  });
  await runArchiveOnce(database, { url, wrap });
  expect(hasWaited).toBe(true);
  expect(await verifiedPartitions()).toHaveLength(2);
});

test('LIF-3: what is expunged during an export makes its file stale, whatever the clocks say', async () => {
  const { url } = await newArchive();
  await createDay(database, startOfDay(50));
  const { id } = await store(50, 'delivered');
  await dropArchived(database);
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 });
  onTestFinished(() => void vi.useRealTimers());
  await runArchiveOnce(database, {
    url,
    wrap: (inner) => ({
      ...inner,
      async recordPart(part, lastTombstone) {
        // As if the clock of the database had been set back by a day.
        if (part.kind === 'attempts')
          await database.query(
            "insert into posthorn.expunged (kind, id, at, applied_at) values ('event', $1, now() - interval '1 day', now()) on conflict do nothing",
            [id],
          );
        await inner.recordPart(part, lastTombstone);
      },
    }),
  });
  expect(
    await database.query('select kind from posthorn.archive_parts where stale_at is not null order by kind'),
  ).toEqual([{ kind: 'attempts' }]);
});

test('LIF-3: closing a tenant is quick beside many endpoints and many files', async () => {
  await database.query(
    `insert into posthorn.endpoints (id, tenant, url, config, version)
     select gen_random_uuid(), case n when 1 then 'posthorn' else 'acme' end, 'http://127.0.0.1/',
            case n when 1 then '{"operator":true}' else '{"description":"x"}' end::json, 1
       from generate_series(1, 10000) as n`,
  );
  await database.query(
    `insert into posthorn.archive_parts (kind, day, part, partition, archive, rows, bytes, sha256, rows_sha256, tenants)
     select 'events', '2026-01-01'::date + n, 0, 'p', 'file:///a', 1, 1, '', '',
            case when n % 1000 = 0 then array['posthorn', 'acme'] else array['acme'] end
       from generate_series(1, 3000) as n`,
  );
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query("set statement_timeout = '2s'");
  await client.query("insert into posthorn.expunged (kind, id) values ('tenant', 'gone')");
  const stale = await database.query('select from posthorn.archive_parts where stale_at is not null');
  expect(stale).toHaveLength(3);
});
