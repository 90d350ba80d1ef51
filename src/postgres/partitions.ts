/** Partitions are created ahead of time, so that an insert always finds one. */
import { DAY_MS, partitionedTables } from '../domain/retention.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { inTransaction, type Pool } from './database.ts';

export interface PartitionPlan {
  readonly days: number;
  /** The time in the id of an old event, which came from an outbox. */
  readonly oldestMs?: number | undefined;
  /** The time in the id of an event that was published while the database's clock was ahead. */
  readonly newestMs?: number | undefined;
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the missing ranges from one day ago to two partitions ahead, and those that cover `oldestMs` and `newestMs`. */
export function missingRanges(
  plan: PartitionPlan & { nowMs: number },
  coveredUntilMs: number | null,
  coveredFromMs: number | null = null,
): Range[] {
  const sizeMs = plan.days * DAY_MS;
  const ranges: Range[] = [];
  // One partition for the whole gap: few events are that old.
  if (plan.oldestMs !== undefined && coveredFromMs !== null && plan.oldestMs < coveredFromMs) {
    ranges.push({ fromMs: Math.floor(plan.oldestMs / DAY_MS) * DAY_MS, toMs: coveredFromMs });
  }
  // Start a day before today, because the clocks that make ids may be a little behind.
  let fromMs = coveredUntilMs ?? Math.floor(plan.nowMs / DAY_MS) * DAY_MS - DAY_MS;
  const untilMs = Math.max(plan.nowMs + 2 * sizeMs, (plan.newestMs ?? 0) + 1);
  while (fromMs < untilMs) {
    ranges.push({ fromMs, toMs: fromMs + sizeMs });
    fromMs += sizeMs;
  }
  return ranges;
}

/** Creates the partitions that will be needed soon. Returns the names of the new ones. */
export async function ensurePartitions(pool: Pool, plan: PartitionPlan): Promise<string[]> {
  return inTransaction(pool, async (client) => {
    // ATTACH may have to wait for an idle transaction, and other statements would queue behind it: try again later.
    await client.query("set local lock_timeout = '3s'");
    await client.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCKS.partitions]);
    // Ids use the database's clock.
    const { rows: times } = await client.query<{ now: Date }>('select now()');
    const nowMs = times[0]!.now.getTime();
    const created: string[] = [];
    for (const parent of partitionedTables) {
      const { rows } = await client.query<{ since: Date | null; until: Date | null }>(
        'select min(from_at) as since, max(to_at) as until from posthorn.partitions where parent = $1',
        [parent],
      );
      const { since, until } = rows[0]!;
      for (const range of missingRanges({ ...plan, nowMs }, until?.getTime() ?? null, since?.getTime())) {
        // By a function that runs as the owner of the tables: this role need not own them.
        const { rows: made } = await client.query<{ name: string }>(
          'select posthorn.create_partition($1, to_timestamp($2), to_timestamp($3)) as name',
          [parent, range.fromMs / 1000, range.toMs / 1000],
        );
        created.push(made[0]!.name);
      }
    }
    return created;
  });
}
