import { inTransaction, type Pool } from './database.ts';

/**
 * events, deliveries and attempts are cut by time. Their partitions are made ahead, so that an insert always finds one.
 */
const PARTITIONED = ['events', 'deliveries', 'attempts'] as const;
const PARTITION_LOCK = 7_283_640_002;
const DAY_MS = 86_400_000;

export interface PartitionPlan {
  readonly days: number;
  /** An event with an id this old has come out of an outbox. */
  readonly oldestMs?: number | undefined;
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Ranges that are missing so that [one day ago, two whole partitions ahead] is covered, given where the last one ends. */
export function missingRanges(
  plan: PartitionPlan & { nowMs: number },
  coveredUntilMs: number | null,
  coveredFromMs: number | null = null,
): Range[] {
  const sizeMs = plan.days * DAY_MS;
  const ranges: Range[] = [];
  // One for all of the gap: it has waited there while nothing ran, so there is little in it.
  if (plan.oldestMs !== undefined && coveredFromMs !== null && plan.oldestMs < coveredFromMs) {
    ranges.push({ fromMs: Math.floor(plan.oldestMs / DAY_MS) * DAY_MS, toMs: coveredFromMs });
  }
  // Ids are made by clocks that may be a little behind: the first partition begins a day before today.
  let fromMs = coveredUntilMs ?? Math.floor(plan.nowMs / DAY_MS) * DAY_MS - DAY_MS;
  while (fromMs < plan.nowMs + 2 * sizeMs) {
    ranges.push({ fromMs, toMs: fromMs + sizeMs });
    fromMs += sizeMs;
  }
  return ranges;
}

/** Makes the partitions that will be needed soon. Returns the names of the new ones; none if all are there. */
export async function ensurePartitions(pool: Pool, plan: PartitionPlan): Promise<string[]> {
  return inTransaction(pool, async (client) => {
    // Behind an idle transaction ATTACH may have to wait: better try again later than queue everybody behind us.
    await client.query("set local lock_timeout = '3s'");
    await client.query('select pg_advisory_xact_lock($1)', [PARTITION_LOCK]);
    // The database's own time: ids are of its clock, whatever this machine thinks.
    const { rows: times } = await client.query<{ now: Date }>('select now()');
    const nowMs = times[0]!.now.getTime();
    const created: string[] = [];
    for (const parent of PARTITIONED) {
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
