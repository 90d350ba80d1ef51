/** What the tests of the archive share: old events in a database, and a look at its tables and at the files of an archive. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { readValues } from '../../src/archive/part-reader.ts';
import { newId } from '../../src/domain/ids.ts';
import type { TestDatabase } from './database.ts';
import { type OldEvent, type OldEventOptions, startOfDay, storeOldEvent } from './retention.ts';

export interface OldEvents {
  /** Stores an event of that many days ago, at one o'clock. */
  store(
    daysAgo: number,
    status: OldEventOptions['status'],
    more?: Partial<OldEventOptions>,
  ): Promise<OldEvent>;
  countOf(table: string): Promise<number>;
  /** Why the archive cannot be written. */
  failureOf(): Promise<string | null>;
  verifiedPartitions(): Promise<string[]>;
}

/** `database` is called at each use, because each test has its own. */
export function oldEventsIn(database: () => TestDatabase): OldEvents {
  const endpointId = newId(Date.now());
  return {
    store: (daysAgo, status, more = {}) =>
      storeOldEvent(database(), { status, endpointId, atMs: startOfDay(daysAgo) + 3_600_000, ...more }),
    countOf: async (table) =>
      (await database().query<{ n: number }>(`select count(*)::int as n from posthorn.${table}`))[0]!.n,
    failureOf: async () =>
      (await database().query<{ error: string | null }>('select error from posthorn.archive_state'))[0]!
        .error,
    verifiedPartitions: async () =>
      (
        await database().query<{ partition: string }>(
          'select partition from posthorn.archived_partitions where verified_at is not null',
        )
      ).map(({ partition }) => partition),
  };
}

/** The files of a folder and of the folders in it, sorted. */
export const filesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();

/** Runs SQL with DuckDB over the files of an archive, as a person would. */
export async function queryFiles(sql: string): Promise<Record<string, unknown>[]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowObjectsJson();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** All values of all Parquet files of a folder, as text. */
export async function contentOf(folder: string): Promise<string> {
  const texts: string[] = [];
  for (const name of await filesIn(folder))
    if (name.endsWith('.parquet'))
      for await (const group of readValues(path.join(folder, name)))
        for (const value of group.flatMap((values) => Object.values(values)))
          texts.push(value instanceof Uint8Array ? Buffer.from(value).toString() : String(value));
  return texts.join('\n');
}
