/** The archive without the rest of Posthorn. */
import { type ArchiveRunOptions, ExportPace, type PaceOptions, runArchive } from '../../src/archive/index.ts';
import { systemClock } from '../../src/domain/clock.ts';
import { newId } from '../../src/domain/ids.ts';
import { DAY_MS } from '../../src/domain/retention.ts';
import type { ArchiveStore } from '../../src/ports/archive-store.ts';
import {
  createPostgresArchiveRequests,
  createPostgresArchiveStore,
} from '../../src/postgres/archive-store.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import type { DropStep } from '../../src/upkeep/drop-partitions.ts';
import { dropPartitions, keepDays } from './retention.ts';

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
    return runArchive({
      store: wrap?.(store) ?? store,
      runner: newId(Date.now()),
      silentMs: 1000,
      restoreKeepMs: DAY_MS,
      onExported: () => {},
      onVerified: () => {},
      onRewritten: () => {},
      pace: new ExportPace({ maxBusy: 1, clock: systemClock }),
      ...options,
    });
  });

/** Whether servers would start the archive process. */
export const hasArchiveWork = (database: Database): Promise<boolean> =>
  withDatabase(database, (opened) => createPostgresArchiveRequests(opened).hasWork());

/**
 * A pace that rests whenever it can, because its clock advances by a second at every reading. `endRest` decides when
 * a rest ends.
 */
export function newRestingPace(
  options: Partial<PaceOptions> = {},
  endRest: (task: () => void) => void = setImmediate,
): ExportPace {
  let time = 0;
  const tick = (): number => {
    time += 1_000;
    return time;
  };
  const after = (_: number, task: () => void): (() => void) => {
    endRest(task);
    return () => {};
  };
  return new ExportPace({ maxBusy: 0.5, clock: { now: tick, monotonic: tick, after }, ...options });
}

/** One round of drops that waits for the archive. Returns what was dropped. */
export const dropArchived = (database: Database, onStep?: (step: DropStep) => void): Promise<string[]> =>
  withDatabase(database, (opened) => {
    const requests = createPostgresArchiveRequests(opened);
    return dropPartitions(database, {
      days: keepDays(30),
      onStep,
      beforeDrop: (partition) => requests.request(partition),
    });
  });

/** One round of drops on a server without an archive. Returns what was dropped. */
export const dropWithoutArchive = (database: Database): Promise<string[]> =>
  withDatabase(database, (opened) => {
    const requests = createPostgresArchiveRequests(opened);
    return dropPartitions(database, {
      days: keepDays(30),
      beforeDrop: (partition) => requests.mayDrop(partition),
    });
  });

/** Drops, archives and drops again until all expired partitions are gone. */
export async function archiveAll(
  database: Database,
  options: RunOptions,
  onDropStep?: (step: DropStep) => void,
): Promise<string[]> {
  const dropped: string[] = [];
  // Deliveries go first, then attempts, then events.
  for (let round = 0; round < 4; round += 1) {
    dropped.push(...(await dropArchived(database, onDropStep)));
    await runArchiveOnce(database, options);
  }
  return dropped;
}
