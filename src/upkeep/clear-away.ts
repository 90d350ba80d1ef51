/** Deletes what nobody can ask for any more, in chunks: no statement is long, none holds many locks. */
import type { Clock } from '../domain/clock.ts';
import { firstIdAt } from '../domain/ids.ts';
import type { Pool } from '../store/database.ts';
import { deleteAuditEntries } from '../store/queries/audit-log.ts';
import { deleteExpiredKeys, deleteLeftovers, deleteOldStats } from '../store/queries/upkeep.ts';

const CHUNK = 5_000;
/** What is left then waits for the next round: other chores want their turn too. */
const CHUNKS_PER_ROUND = 200;
/** The longest window of statistics is a week. */
const KEEP_STATS_DAYS = 35;
const KEEP_TASKS_DAYS = 90;

export interface ClearAwayOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly auditRetentionMs: number;
}

export async function clearAway(options: ClearAwayOptions, stopped: () => boolean): Promise<void> {
  const { pool, clock, auditRetentionMs } = options;
  await inChunks(() => deleteExpiredKeys(pool, CHUNK), stopped);
  await inChunks(() => deleteOldStats(pool, KEEP_STATS_DAYS, CHUNK), stopped);
  const firstKept = firstIdAt(clock.now() - auditRetentionMs);
  await inChunks(() => deleteAuditEntries(pool, firstKept, CHUNK), stopped);
  await deleteLeftovers(pool, KEEP_TASKS_DAYS);
}

async function inChunks(deleteSome: () => Promise<number>, stopped: () => boolean): Promise<void> {
  for (let chunks = 0; chunks < CHUNKS_PER_ROUND && !stopped(); chunks += 1) {
    if ((await deleteSome()) < CHUNK) return;
  }
}
