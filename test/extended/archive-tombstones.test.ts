/** LIF-3: tombstones, which keep what was expunged out of the archive and out of restored databases. */
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { timeOfId } from '../../src/domain/ids.ts';
import { type Client, inTransaction } from '../../src/postgres/database.ts';
import { expungePayload } from '../../src/postgres/queries/expunge-payload.ts';
import { closeTenant } from '../../src/postgres/queries/expunge-tenant.ts';
import { mergeTombstones } from '../../src/postgres/queries/tombstones.ts';
import { dropArchived, hasArchiveWork, runArchiveOnce } from '../support/archive.ts';
import { newArchive } from '../support/archive-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { filesIn, oldEventsIn } from '../support/old-events.ts';
import { MAIN } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';
import { createDay, startOfDay } from '../support/retention.ts';

let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
  onTestFinished(() => database.drop());
});

const { store } = oldEventsIn(() => database);

async function withClient<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  try {
    return await inTransaction(pool, work);
  } finally {
    await pool.end();
  }
}

test.for(['is not applied', 'was applied during the export', 'waits for late results'])(
  'LIF-3: a tombstone that %s makes the file stale',
  async (when) => {
    const { url } = await newArchive();
    await createDay(database, startOfDay(50));
    const { id } = await store(50, 'delivered');
    await database.query("insert into posthorn.expunged (kind, id) values ('event', $1)", [id]);
    if (when === 'waits for late results')
      await database.query(
        "update posthorn.expunged set applied_at = now(), settle_until = now() + interval '1 hour'",
      );
    await dropArchived(database);
    await runArchiveOnce(database, {
      url,
      wrap: (inner) => ({
        ...inner,
        async recordPart(part, lastTombstone) {
          if (part.kind === 'attempts' && when === 'was applied during the export')
            await database.query('update posthorn.expunged set applied_at = now(), seq = default');
          await inner.recordPart(part, lastTombstone);
        },
      }),
    });
    const parts = await database.query(
      'select kind, stale_at is not null as is_stale from posthorn.archive_parts order by kind',
    );
    expect(parts).toEqual([
      { kind: 'attempts', is_stale: true },
      { kind: 'deliveries', is_stale: false },
    ]);
  },
);

test('LIF-3: the tombstone of a tenant covers events that are younger than the clock of the database', async () => {
  const { id } = await store(0, 'delivered', { atMs: Date.now() + 3_600_000 });
  await database.query("insert into posthorn.tenants (id) values ('acme') on conflict do nothing");
  await withClient((client) => closeTenant(client, 'acme'));
  const [tombstone] = await database.query<{ at: Date }>('select at from posthorn.expunged');
  expect(tombstone!.at.getTime()).toBeGreaterThan(timeOfId(id));
});

test('LIF-3: of two tombstones of a tenant the later one counts, and is applied again', async () => {
  const merge = (at: string) =>
    withClient((client) =>
      mergeTombstones(client, [
        { kind: 'tenant', id: 'gone', at, endpoint_ids: [], first_id: null, last_id: null },
      ]),
    );
  const read = async () =>
    (
      await database.query<{ at: Date; is_applied: boolean }>(
        'select at, applied_at is not null as is_applied from posthorn.expunged',
      )
    ).map(({ at, is_applied }) => [at.toISOString(), is_applied]);
  const [early, late] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z'];
  await merge(early);
  await database.query('update posthorn.expunged set applied_at = now()');
  expect(await merge(late)).toBe(1);
  expect(await read()).toEqual([[late, false]]);
  expect(await merge(early)).toBe(0);
  expect(await read()).toEqual([[late, false]]);
});

describe('LIF-3: a database that is restored from a backup', () => {
  const SECRET = 'very-private-thing';
  const unapplied = () => database.query('select from posthorn.expunged where applied_at is null');

  test('gets the tombstones back that the archive has, and expunges again', async () => {
    const { url, folder } = await newArchive();
    await runArchiveOnce(database, { url });
    await createDay(database, startOfDay(20));
    const { id } = await store(20, 'delivered', { data: `{"a":"${SECRET}"}` });
    await store(20, 'delivered', { tenant: 'gone' });
    await database.query("insert into posthorn.tenants (id) values ('gone')");
    // The backup.
    await database.query('create schema backup');
    for (const table of ['events', 'expunged', 'archive_state'])
      await database.query(`create table backup.${table} as select * from posthorn.${table}`);
    await withClient(async (client) => {
      await expungePayload(client, { id, tenant: 'acme' }, 'admin');
      await client.query(
        "insert into posthorn.expunged (kind, id, at, applied_at) values ('tenant', 'gone', now() - interval '1 day', now())",
      );
    });
    expect(await hasArchiveWork(database)).toBe(true);
    await runArchiveOnce(database, { url });
    expect((await filesIn(folder)).filter((name) => name.startsWith('tombstones'))).toHaveLength(3);
    expect(await hasArchiveWork(database)).toBe(false);
    const [before] = await database.query<{ n: number }>('select count(*)::int as n from posthorn.expunged');

    // The restore.
    await database.query('delete from posthorn.expunged');
    await database.query('delete from posthorn.events where id = $1', [id]);
    await database.query('insert into posthorn.events select * from backup.events where id = $1', [id]);
    await database.query('delete from posthorn.archive_state');
    await database.query('insert into posthorn.archive_state select * from backup.archive_state');
    await runArchiveOnce(database, { url });
    const [event] = await database.query<{ data: null; by: string }>(
      "select data, options ->> 'expunged_by' as by from posthorn.events where id = $1",
      [id],
    );
    expect(event).toEqual({ data: null, by: 'tombstone' });
    expect(await database.query('select count(*)::int as n from posthorn.expunged')).toEqual([before]);
    // A task expunges the tenant.
    expect(
      await database.query(
        "select selection ->> 'tenant' as tenant from posthorn.tasks where kind = 'expunge'",
      ),
    ).toEqual([{ tenant: 'gone' }]);
    expect(await unapplied()).toHaveLength(1);
    // The next run finds nothing new.
    await runArchiveOnce(database, { url });
    expect(await database.query("select from posthorn.tasks where kind = 'expunge'")).toHaveLength(1);
  });

  test('a damaged copy of the tombstones is a clear error', async () => {
    const { url, folder } = await newArchive();
    await database.query(
      "insert into posthorn.expunged (kind, id, applied_at) values ('tenant', 'gone', now())",
    );
    await runArchiveOnce(database, { url });
    await writeFile(path.join(folder, 'tombstones/latest.json'), 'x');
    await expect(runArchiveOnce(database, { url })).rejects.toThrow(
      /tombstones\/latest\.json .* cannot be read/,
    );
    // Without a copy, the next run writes all of it.
    await rm(path.join(folder, 'tombstones'), { recursive: true });
    await runArchiveOnce(database, { url });
    const [day] = (await filesIn(folder)).filter((name) => name.endsWith('.jsonl'));
    await writeFile(path.join(folder, day!), '{"kind":"tenant"}\n');
    await writeFile(path.join(folder, 'tombstones/latest.json'), '{"token":"another"}');
    await expect(runArchiveOnce(database, { url })).rejects.toThrow(/is damaged: Line 1 is not a tombstone/);
  });
});

describe('LIF-3: posthorn expunged', () => {
  async function run(...args: string[]): Promise<{ code: unknown; out: string }> {
    const { ended, output } = startProcess([MAIN, 'expunged', ...args], {
      env: { DATABASE_URL: database.url },
    });
    return { code: await ended, out: output() };
  }

  test('exports the list, and imports it into a database that was restored', async () => {
    const { folder } = await newArchive();
    const file = path.join(folder, 'expunged.jsonl');
    await createDay(database, startOfDay(20));
    const { id } = await store(20, 'delivered');
    await database.query("insert into posthorn.tenants (id) values ('gone')");
    await database.query(
      "insert into posthorn.expunged (kind, id, applied_at) values ('event', $1, now()), ('tenant', 'gone', now())",
      [id],
    );
    const { code, out } = await run('export');
    expect(code).toBe(0);
    await writeFile(file, out);
    await database.query('delete from posthorn.expunged');

    expect(await run('import', file)).toMatchObject({
      code: 0,
      out: expect.stringContaining('2 of 2 were missing'),
    });
    expect(await database.query('select data from posthorn.events where id = $1', [id])).toEqual([
      { data: null },
    ]);
    expect(
      await database.query("select from posthorn.tenants where id = 'gone' and expunging_at is not null"),
    ).toHaveLength(1);
    expect(await run('import', file)).toMatchObject({ out: expect.stringContaining('0 of 2 were missing') });
  });

  test('refuses a file that is not such a list', async () => {
    const { folder } = await newArchive();
    const file = path.join(folder, 'other.jsonl');
    await writeFile(file, '\n{"kind":"event","id":"x","at":"2026-11-15T00:00:00Z","endpoint_ids":[]}\n');
    expect(await run('import', file)).toMatchObject({
      code: 1,
      out: expect.stringContaining('Line 2 is not a tombstone'),
    });
    expect(await run('import', `${file}.missing`)).toMatchObject({
      code: 1,
      out: expect.stringContaining('cannot be read'),
    });
    expect((await run('import')).code).toBe(2);
    expect(await database.query('select from posthorn.expunged')).toEqual([]);
  });
});
