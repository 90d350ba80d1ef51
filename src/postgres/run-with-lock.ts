import type { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Client, inTransaction, type Pool } from './database.ts';
import { tryLock } from './queries/upkeep.ts';

/** How long a paused process keeps the lock, unless the caller passes another time. */
const MAX_SILENCE_MS = 10_000;
const BEAT_MS = 1_000;

/**
 * Runs `work` while a transaction holds an advisory lock. Returns false if another transaction holds it. Other connections
 * do the work; the holder proves every second that its process runs. If the process is paused, PostgreSQL ends the
 * transaction, and another process can take the lock. Throws at the end if the lock was lost.
 */
export function runWithLock(
  pool: Pool,
  lock: (typeof ADVISORY_LOCKS)[keyof typeof ADVISORY_LOCKS],
  work: (holder: Client) => Promise<void>,
  maxSilenceMs = MAX_SILENCE_MS,
): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    if (!(await tryLock(client, lock))) return false;
    await client.query(`set local idle_in_transaction_session_timeout = ${maxSilenceMs}`);
    // If it fails, the lock is lost, and the commit fails too.
    const beat = setInterval(() => void client.query('select').catch(() => {}), BEAT_MS);
    try {
      await work(client);
    } finally {
      clearInterval(beat);
    }
    return true;
  });
}
