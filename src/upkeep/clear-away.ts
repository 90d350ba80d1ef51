/** Deletes what nobody can ask for any more, in chunks: no statement is long, none holds many locks. */
import type { Clock } from '../domain/clock.ts';
import { firstIdAt } from '../domain/ids.ts';
import type { Pool } from '../postgres/database.ts';
import { deleteAuditEntries } from '../postgres/queries/audit-log.ts';
import { deleteExpiredRequests } from '../postgres/queries/idempotent-requests.ts';
import { deleteOldInboxes } from '../postgres/queries/inboxes.ts';
import { HOUR, MINUTE, QUARTER, RESOLUTIONS, type Resolution } from '../postgres/queries/stats.ts';
import { deleteExpiredKeys, deleteLeftovers, deleteOldStats } from '../postgres/queries/upkeep.ts';

const CHUNK = 5_000;
/** What is left then waits for the next round: other chores want their turn too. */
const CHUNKS_PER_ROUND = 200;
/** What the windows of 1 h, 24 h and 7 d show, and some more: hours are kept for questions about last month. */
const KEEP_STATS_HOURS: Readonly<Record<Resolution, number>> = {
  [MINUTE]: 2,
  [QUARTER]: 26,
  [HOUR]: 35 * 24,
};
const KEEP_TASKS_DAYS = 90;
/** An inbox that an endpoint delivers to does not expire; the requests in it do. */
const KEEP_INBOX_REQUESTS_MS = 7 * 24 * 3_600_000;

export interface ClearAwayOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly auditRetentionMs: number;
}

export async function clearAway(options: ClearAwayOptions, stopped: () => boolean): Promise<void> {
  const { pool, clock, auditRetentionMs } = options;
  await inChunks(() => deleteExpiredKeys(pool, CHUNK), stopped);
  for (const seconds of RESOLUTIONS) {
    const keepHours = KEEP_STATS_HOURS[seconds];
    await inChunks(() => deleteOldStats(pool, { seconds, keepHours, chunk: CHUNK }), stopped);
  }
  await inChunks(() => deleteExpiredRequests(pool, CHUNK), stopped);
  const firstKept = firstIdAt(clock.now() - auditRetentionMs);
  await inChunks(() => deleteAuditEntries(pool, firstKept, CHUNK), stopped);
  await deleteOldInboxes(pool, clock.now(), clock.now() - KEEP_INBOX_REQUESTS_MS);
  await deleteLeftovers(pool, KEEP_TASKS_DAYS);
}

async function inChunks(deleteSome: () => Promise<number>, stopped: () => boolean): Promise<void> {
  for (let chunks = 0; chunks < CHUNKS_PER_ROUND && !stopped(); chunks += 1) {
    if ((await deleteSome()) < CHUNK) return;
  }
}
