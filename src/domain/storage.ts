/** How much is stored, and when the disk will be full. Pure. */
import { DAY_MS } from './retention.ts';

export const storageKinds = [
  'events',
  'deliveries',
  'attempts',
  'queue',
  'dead_letters',
  'converted_payloads',
  'batches',
  'debounce',
  'outbox',
  'idempotency',
  'inboxes',
  'audit',
  'statistics',
  /** Every other table of Posthorn: endpoints, keys, tasks, the catalogue. An estimate. */
  'other',
] as const;
export type StorageKind = (typeof storageKinds)[number];

export interface StoredKind {
  /** With indexes. */
  readonly bytes: number;
  /** An estimate of PostgreSQL for tables that grow. */
  readonly rows: number;
  /** Null: there are no rows. */
  readonly oldestAt: number | null;
}

/** One partition: the time that it covers, and its size. */
export interface StoredPartition {
  readonly fromMs: number;
  readonly toMs: number;
  readonly bytes: number;
}

/** A shorter sample gives no useful rate. */
const SHORTEST_SAMPLE_MS = 3_600_000;

/**
 * Bytes that events, deliveries and attempts add per day, measured over the newest partitions that together cover at
 * least a day. Null: there is less than an hour of data.
 */
export function growthPerDay(
  partitions: readonly StoredPartition[],
  oldestEventAt: number | null,
  nowMs: number,
): number | null {
  if (oldestEventAt === null) return null;
  let bytes = 0;
  let sinceMs = nowMs;
  const starts = [...new Set(partitions.map(({ fromMs }) => fromMs))].filter((from) => from < nowMs);
  for (const fromMs of starts.sort((a, b) => b - a)) {
    if (nowMs - sinceMs >= DAY_MS) break;
    for (const partition of partitions) if (partition.fromMs === fromMs) bytes += partition.bytes;
    sinceMs = Math.max(fromMs, oldestEventAt);
  }
  const sampleMs = nowMs - sinceMs;
  return sampleMs < SHORTEST_SAMPLE_MS ? null : (bytes / sampleMs) * DAY_MS;
}

export interface DiskForecast {
  readonly freeBytes: number;
  readonly bytesPerDay: number;
  /** After how many days retention removes as much as is added. Null: never. */
  readonly growsForDays: number | null;
}

/** In how many days the disk is full at the current rate. Null: never. Nothing is added, or retention stops the growth. */
export function daysUntilFull({ freeBytes, bytesPerDay, growsForDays }: DiskForecast): number | null {
  if (bytesPerDay <= 0) return null;
  const days = freeBytes / bytesPerDay;
  return growsForDays !== null && days > growsForDays ? null : days;
}
