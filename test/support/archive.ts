/** The archive without the rest of Posthorn. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { onTestFinished } from 'vitest';
import { type ArchiveRunOptions, runArchive } from '../../src/archive/index.ts';
import { newId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/retention.ts';
import type { ArchiveStore } from '../../src/ports/archive-store.ts';
import {
  createPostgresArchiveRequests,
  createPostgresArchiveStore,
} from '../../src/postgres/archive-store.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { dropPartitions, keepDays } from './retention.ts';

/** A directory for an archive, deleted after the test. */
export async function newArchive(): Promise<{ readonly folder: string; readonly url: string }> {
  const folder = await mkdtemp(path.join(tmpdir(), 'posthorn-archive-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return { folder, url: pathToFileURL(folder).href };
}

type Database = { readonly url: string };

async function withDatabase<T>(
  { url }: Database,
  work: (database: ReturnType<typeof openDatabase>) => Promise<T>,
): Promise<T> {
  const opened = openDatabase({
    connectionString: url,
    apiConnections: 3,
    dispatchConnections: 1,
    onIdleError: () => {},
  });
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

export interface RunOptions extends Partial<Omit<ArchiveRunOptions, 'store'>> {
  readonly url: string;
  /** Changes the store, to make it fail. */
  readonly wrap?: (store: ArchiveStore) => ArchiveStore;
}

/** One run of the archive process, in this process. */
export const runArchiveOnce = (database: Database, { wrap, ...options }: RunOptions): Promise<boolean> =>
  withDatabase(database, (opened) => {
    const store = createPostgresArchiveStore(opened);
    return runArchive(
      {
        store: wrap?.(store) ?? store,
        runner: newId(Date.now()),
        now: Date.now,
        silentMs: 1000,
        restoreKeepMs: DAY_MS,
        onExported: () => {},
        onVerified: () => {},
        onRewritten: () => {},
        ...options,
      },
      () => false,
    );
  });

/** One round of drops that waits for the archive. Returns what was dropped. */
export const dropArchived = (database: Database, days = 30): Promise<string[]> =>
  withDatabase(database, (opened) => {
    const requests = createPostgresArchiveRequests(opened);
    return dropPartitions(database, {
      days: keepDays(days),
      beforeDrop: (partition) => requests.request(partition),
    });
  });

/** Drops, archives and drops again until all expired partitions are gone. */
export async function archiveAll(database: Database, options: RunOptions): Promise<string[]> {
  const dropped: string[] = [];
  // Deliveries go first, then attempts, then events.
  for (let round = 0; round < 4; round += 1) {
    dropped.push(...(await dropArchived(database)));
    await runArchiveOnce(database, options);
  }
  return dropped;
}
