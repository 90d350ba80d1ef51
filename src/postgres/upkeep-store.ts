import type { UpkeepStore } from '../ports/upkeep-store.ts';
import { ADVISORY_LOCKS } from './advisory-locks.ts';
import { type Database, inTransaction } from './database.ts';
import { applyTombstones } from './queries/apply-tombstones.ts';
import { deleteAuditEntries } from './queries/audit-log.ts';
import { deleteBatches } from './queries/batches.ts';
import { deleteOrphanedConversions } from './queries/conversions.ts';
import { deleteDebounced } from './queries/debounce.ts';
import { disableEndpoint } from './queries/endpoints.ts';
import { deleteExpiredRequests } from './queries/idempotent-requests.ts';
import { deleteOldInboxes } from './queries/inboxes.ts';
import { redactOldAttempts } from './queries/redact-attempts.ts';
import { deleteOldSchemaFailures, deleteSurplusSchemaFailures } from './queries/schema-failures.ts';
import { sealPlainHeaders } from './queries/seal-plain-headers.ts';
import { deleteOldSkipped, deleteSurplusSkipped } from './queries/skipped-deliveries.ts';
import {
  deleteExpiredKeys,
  deleteLeftovers,
  deleteOldStats,
  findEndpointsByDeadRate,
  findFailingEndpoints,
} from './queries/upkeep.ts';
import { runWithLock } from './run-with-lock.ts';
import type { SecretBox } from './secret-box.ts';
import { withStoreErrors } from './store-error.ts';

export interface PostgresUpkeepStoreOptions {
  readonly database: Pick<Database, 'pool'>;
  readonly ensurePartitions: () => Promise<void>;
  readonly secretBox: SecretBox;
}

export function createPostgresUpkeepStore({
  database,
  ensurePartitions,
  secretBox,
}: PostgresUpkeepStoreOptions): UpkeepStore {
  const pool = database.pool('upkeep');
  return {
    runExclusively: (work) => withStoreErrors(runWithLock(pool, ADVISORY_LOCKS.upkeep, work)),
    applyTombstones: (nowMs) => withStoreErrors(applyTombstones(pool, nowMs)),
    ensurePartitions: () => withStoreErrors(ensurePartitions()),
    redactOldAttempts: (max) => withStoreErrors(redactOldAttempts(pool, max)),
    sealPlainHeaders: (max) => withStoreErrors(sealPlainHeaders(pool, secretBox, max)),
    findByDeadRate: (limits) => withStoreErrors(findEndpointsByDeadRate(pool, limits)),
    findFailing: (failingMs) => withStoreErrors(findFailingEndpoints(pool, failingMs)),
    disable: (id, reason, rule) =>
      withStoreErrors(inTransaction(pool, (client) => disableEndpoint(client, id, { reason, rule }))),
    deleteIdempotencyKeys: (max) => withStoreErrors(deleteExpiredKeys(pool, max)),
    deleteIdempotentRequests: (max) => withStoreErrors(deleteExpiredRequests(pool, max)),
    deleteStatistics: (seconds, keepHours, chunk) =>
      withStoreErrors(deleteOldStats(pool, { seconds, keepHours, chunk })),
    deleteBatches: (firstKept, max) => withStoreErrors(deleteBatches(pool, firstKept, max)),
    deleteDebounced: (max) => withStoreErrors(deleteDebounced(pool, max)),
    deleteAuditEntries: (firstKept, max) => withStoreErrors(deleteAuditEntries(pool, firstKept, max)),
    deleteOldSkipped: (cutoffMs, max) => withStoreErrors(deleteOldSkipped(pool, cutoffMs, max)),
    deleteSurplusSkipped: (keep, max) => withStoreErrors(deleteSurplusSkipped(pool, keep, max)),
    deleteOldSchemaFailures: (firstKept, max) =>
      withStoreErrors(deleteOldSchemaFailures(pool, firstKept, max)),
    deleteSurplusSchemaFailures: (keep, max) => withStoreErrors(deleteSurplusSchemaFailures(pool, keep, max)),
    deleteConversions: (firstKept, isStopped) =>
      withStoreErrors(deleteOrphanedConversions(pool, firstKept, isStopped)),
    deleteInboxes: (now, requestsBefore) => withStoreErrors(deleteOldInboxes(pool, now, requestsBefore)),
    deleteLeftovers: (keepTaskDays) => withStoreErrors(deleteLeftovers(pool, keepTaskDays)),
  };
}
