import type pg from 'pg';
import { migrate } from '../src/postgres/migrate.ts';
import { ensurePartitions } from '../src/postgres/partitions.ts';

const DAY_MS = 86_400_000;
const PARTITION_DAYS = 7;

/** Migrates the database and creates the partitions that the history needs, as if Posthorn had run all the time. */
export async function prepareForHistory(pool: pg.Pool, spanMs: number): Promise<void> {
  await migrate(pool);
  await ensurePartitions(pool, { days: PARTITION_DAYS });
  const { rows } = await pool.query<{ since: Date }>('select min(from_at) as since from posthorn.partitions');
  const oldestMs = Date.now() - spanMs;
  for (let sinceMs = rows[0]!.since.getTime(); sinceMs > oldestMs; ) {
    sinceMs -= PARTITION_DAYS * DAY_MS;
    await ensurePartitions(pool, { days: PARTITION_DAYS, oldestMs: sinceMs });
  }
}
