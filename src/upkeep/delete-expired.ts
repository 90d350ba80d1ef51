/** Deletes expired data in chunks, so that no statement takes long or holds many locks. */
import type { Clock } from '../domain/clock.ts';
import { firstIdAt } from '../domain/ids.ts';
import { cutoffOf, type RetentionDays } from '../domain/retention.ts';
import { HOUR, MINUTE, QUARTER, RESOLUTIONS, type Resolution } from '../domain/statistics.ts';
import type { ExpiredDataCleaner } from '../ports/upkeep-store.ts';

const CHUNK = 5_000;
/** The limit per kind and round. The rest waits for the next round, so that other upkeep gets its turn. */
const CHUNKS_PER_ROUND = 200;
/** A little longer than the window of 24 h needs. */
const KEEP_QUARTERS_HOURS = 26;
const HOUR_MS = 3_600_000;
const KEEP_TASKS_DAYS = 90;
/** An inbox that an endpoint delivers to does not expire, but the requests in it do. */
const KEEP_INBOX_REQUESTS_MS = 7 * 24 * 3_600_000;
const KEEP_SCHEMA_FAILURES_MS = 7 * 24 * 3_600_000;
const KEEP_SCHEMA_FAILURES = { perTenant: 10_000, perTenantAndType: 1_000 };

export interface DeleteExpiredOptions {
  readonly store: ExpiredDataCleaner;
  readonly clock: Clock;
  readonly days: Pick<RetentionDays, 'events' | 'attempts' | 'audit' | 'statistics'>;
  /** How long statistics by the minute are kept. */
  readonly minuteStatisticsMs: number;
  /** How many deliveries that were skipped while an endpoint was disabled are kept per endpoint, and how long. */
  readonly skippedPerEndpoint: number;
  readonly skippedRetentionMs: number;
}

export async function deleteExpired(
  { store, clock, days, minuteStatisticsMs, skippedPerEndpoint, skippedRetentionMs }: DeleteExpiredOptions,
  isStopped: () => boolean,
): Promise<void> {
  await deleteInChunks(() => store.deleteIdempotencyKeys(CHUNK), isStopped);
  const keepHours: Readonly<Record<Resolution, number>> = {
    [MINUTE]: Math.ceil(minuteStatisticsMs / HOUR_MS),
    [QUARTER]: KEEP_QUARTERS_HOURS,
    [HOUR]: days.statistics * 24,
  };
  for (const resolution of RESOLUTIONS)
    if (keepHours[resolution] !== 0)
      await deleteInChunks(() => store.deleteStatistics(resolution, keepHours[resolution], CHUNK), isStopped);
  await deleteInChunks(() => store.deleteIdempotentRequests(CHUNK), isStopped);
  const auditCutoffMs = cutoffOf(days.audit, clock.now());
  if (auditCutoffMs !== null) {
    const firstKept = firstIdAt(auditCutoffMs);
    await deleteInChunks(() => store.deleteAuditEntries(firstKept, CHUNK), isStopped);
  }
  const attemptsCutoffMs = cutoffOf(days.attempts, clock.now());
  if (attemptsCutoffMs !== null) {
    const firstKept = firstIdAt(attemptsCutoffMs);
    await deleteInChunks(() => store.deleteBatches(firstKept, CHUNK), isStopped);
  }
  await deleteInChunks(() => store.deleteDebounced(CHUNK), isStopped);
  const skippedCutoffMs = clock.now() - skippedRetentionMs;
  await deleteInChunks(() => store.deleteOldSkipped(skippedCutoffMs, CHUNK), isStopped);
  await deleteInChunks(() => store.deleteSurplusSkipped(skippedPerEndpoint, CHUNK), isStopped);
  const firstFailure = firstIdAt(clock.now() - KEEP_SCHEMA_FAILURES_MS);
  await deleteInChunks(() => store.deleteOldSchemaFailures(firstFailure, CHUNK), isStopped);
  await deleteInChunks(() => store.deleteSurplusSchemaFailures(KEEP_SCHEMA_FAILURES, CHUNK), isStopped);
  const eventsCutoffMs = cutoffOf(days.events, clock.now());
  if (eventsCutoffMs !== null) await store.deleteConversions(firstIdAt(eventsCutoffMs), isStopped);
  if (isStopped()) return;
  await store.deleteInboxes(clock.now(), clock.now() - KEEP_INBOX_REQUESTS_MS);
  await store.deleteLeftovers(KEEP_TASKS_DAYS);
}

async function deleteInChunks(deleteChunk: () => Promise<number>, isStopped: () => boolean): Promise<void> {
  for (let chunks = 0; chunks < CHUNKS_PER_ROUND && !isStopped(); chunks += 1) {
    if ((await deleteChunk()) < CHUNK) return;
  }
}
