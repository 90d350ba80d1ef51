/** What is stored, how long it is kept, and when the disk will be full. */
import { statfs } from 'node:fs/promises';
import type { Clock } from '../domain/clock.ts';
import { cutoffOf, DAY_MS, partitionedTables, type RetentionDays } from '../domain/retention.ts';
import { daysUntilFull, growthPerDay, type StorageKind, type StoredKind } from '../domain/storage.ts';
import type { Queryable } from '../postgres/database.ts';
import { readStorage, type StorageFacts } from '../postgres/queries/storage.ts';

export interface StorageReport {
  readonly kinds: Readonly<Record<StorageKind, StoredKind & { readonly retentionDays: number | null }>>;
  readonly databaseBytes: number;
  /** Dead letters that retention discarded in the last 30 days. */
  readonly deadLettersExpired: number;
  /** The bytes of events, deliveries and attempts together, per event. Null: there are no events, or PostgreSQL has not counted them yet. */
  readonly bytesPerEvent: number | null;
  readonly bytesPerDay: number | null;
  /** Null: the file system of the database cannot be seen from here. */
  readonly disk: { readonly totalBytes: number; readonly freeBytes: number } | null;
  /** Null: never at the current rate, or unknown. */
  readonly fullAt: number | null;
  /** How long ago the oldest expired partition should have been dropped. 0: none is overdue. */
  readonly overdueMs: number;
}

export interface StorageOptions {
  readonly days: RetentionDays;
  readonly partitionDays: number;
  readonly clock: Pick<Clock, 'now'>;
}

export async function reportStorage(
  client: Queryable,
  { days, partitionDays, clock }: StorageOptions,
): Promise<StorageReport> {
  const facts = await readStorage(client);
  const nowMs = clock.now();
  const { events, deliveries, attempts } = facts.kinds;
  const bytesPerDay = growthPerDay(facts.partitions, events.oldestAt, nowMs);
  const disk = facts.localDirectory === null ? null : await readDisk(facts.localDirectory);
  const ageDays = events.oldestAt === null ? 0 : (nowMs - events.oldestAt) / DAY_MS;
  const fullInDays =
    disk === null || bytesPerDay === null
      ? null
      : daysUntilFull({
          freeBytes: disk.freeBytes,
          bytesPerDay,
          // Upkeep drops a partition when its last row has expired.
          growsForDays: days.events === 0 ? null : Math.max(0, days.events + partitionDays - ageDays),
        });
  const keptFor = retentionOfKinds(days);
  return {
    kinds: Object.fromEntries(
      Object.entries(facts.kinds).map(([kind, stored]) => [
        kind,
        { ...stored, retentionDays: keptFor[kind as StorageKind] },
      ]),
    ) as StorageReport['kinds'],
    databaseBytes: facts.databaseBytes,
    deadLettersExpired: facts.deadLettersExpired,
    bytesPerEvent:
      events.rows === 0 ? null : (events.bytes + deliveries.bytes + attempts.bytes) / events.rows,
    bytesPerDay,
    disk,
    fullAt: fullInDays === null ? null : nowMs + fullInDays * DAY_MS,
    overdueMs: overdueOf(facts, days, nowMs),
  };
}

/** Null: forever, until it is delivered, replayed or discarded (queue, dead letters), or as a setting of its own says. */
function retentionOfKinds(days: RetentionDays): Record<StorageKind, number | null> {
  const orNull = (value: number): number | null => (value === 0 ? null : value);
  return {
    events: orNull(days.events),
    deliveries: orNull(days.deliveries),
    attempts: orNull(days.attempts),
    queue: null,
    dead_letters: orNull(days.deadLetters),
    converted_payloads: orNull(days.payloads),
    batches: orNull(days.attempts),
    debounce: orNull(days.deliveries),
    outbox: null,
    idempotency: null,
    inboxes: null,
    audit: orNull(days.audit),
    statistics: orNull(days.statistics),
    other: null,
  };
}

function overdueOf({ partitions }: StorageFacts, days: RetentionDays, nowMs: number): number {
  let overdueMs = 0;
  for (const table of partitionedTables) {
    const cutoffMs = cutoffOf(days[table], nowMs);
    if (cutoffMs === null) continue;
    for (const partition of partitions)
      if (partition.table === table) overdueMs = Math.max(overdueMs, cutoffMs - partition.toMs);
  }
  return overdueMs;
}

async function readDisk(directory: string): Promise<StorageReport['disk']> {
  try {
    const { bavail, blocks, bsize } = await statfs(directory);
    return { totalBytes: blocks * bsize, freeBytes: bavail * bsize };
  } catch {
    // PostgreSQL runs in another container, or this user may not read its directory.
    return null;
  }
}
