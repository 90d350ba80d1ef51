import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { dayOf, type Manifest } from '../../src/domain/archive.ts';
import { newId, publicId } from '../../src/domain/ids.ts';
import { archiveAll, dropArchived, newArchive } from '../support/archive.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createDay, type OldEventOptions, startOfDay, storeOldEvent } from '../support/retention.ts';

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
  test('a partition is dropped only after it was exported and verified, and DuckDB reads the files as they are', async () => {
    const { folder, url } = await newArchive();
    const data = '{"order_id": "ord_1",  "total":"59.90", "name":"Zoë \\u0000"}';
    const day = dayOf(startOfDay(50));
    await createDay(database, startOfDay(50));
    await createDay(database, startOfDay(49));
    const event = await store(50, 'delivered', { data });
    for (const status of ['dead', 'waiting', 'skipped'] as const) await store(50, status);
    await store(49, 'delivered', { tenant: 'other' });

    // Without an archive nothing is dropped.
    expect(await dropArchived(database)).toEqual([]);
    expect(await countOf('deliveries')).toBe(3);
    const dropped = await archiveAll(database, { url });
    expect(dropped.filter((name) => !name.includes('kept'))).toHaveLength(6);
    // The dead letter and the waiting delivery stay with their events.
    expect(await countOf('events')).toBe(2);
    expect(await failureOf()).toBeNull();
    expect(await filesIn(folder)).toEqual([
      'archive.json',
      ...['attempts', 'deliveries', 'events'].flatMap((kind) =>
        [day, dayOf(startOfDay(49))].flatMap((each) => [
          `${kind}/day=${each}/manifest.json`,
          `${kind}/day=${each}/part-0000.parquet`,
        ]),
      ),
    ]);

    const events = await query(
      `select id, tenant, type, decode(data) as data, octet_length(data) as bytes, created_at::varchar as created_at, day::varchar as day
         from '${folder}/events/*/*.parquet' order by id`,
    );
    expect(events).toHaveLength(5);
    expect(events[0]).toEqual({
      id: publicId('evt', event.id),
      tenant: 'acme',
      type: 'order.paid',
      data,
      bytes: String(Buffer.byteLength(data)),
      created_at: expect.stringMatching(new RegExp(`^${day} 01:00:00`)),
      day,
    });
    const joined = await query(
      `select e.id, d.status, a.status_code, a.tenant from '${folder}/events/*/*.parquet' e
         left join '${folder}/deliveries/*/*.parquet' d on d.event_id = e.id
         join '${folder}/attempts/*/*.parquet' a on a.event_id = e.id where e.day = '${day}' order by e.id`,
    );
    expect(joined.map(({ status }) => status)).toEqual(['delivered', null, null, 'skipped']);
    expect(joined[0]).toMatchObject({ status_code: 500, tenant: 'acme' });
    const types = await query(
      `select column_name as name, column_type as type from (describe select * from '${folder}/attempts/*/*.parquet')`,
    );
    expect(Object.fromEntries(types.map(({ name, type }) => [name, type]))).toMatchObject({
      started_at: 'TIMESTAMP WITH TIME ZONE',
      duration_ms: 'INTEGER',
      response_truncated: 'BOOLEAN',
      response_body: 'BLOB',
      url: 'VARCHAR',
    });

    const manifest = JSON.parse(
      await readFile(path.join(folder, `events/day=${day}/manifest.json`), 'utf8'),
    ) as Manifest;
    expect(manifest).toMatchObject({
      schema_version: 1,
      kind: 'events',
      day,
      rows: 4,
      files: [{ name: 'part-0000.parquet', rows: 4, min_id: publicId('evt', event.id) }],
    });
    const tasks = await database.query(
      "select state, done, total from posthorn.tasks where kind = 'archive'",
    );
    expect(tasks).toHaveLength(6);
    expect(tasks).toContainEqual({ state: 'done', done: 4, total: 4 });
  });
});
