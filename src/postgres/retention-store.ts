import type { RetentionStore } from '../ports/retention-store.ts';
import type { Database } from './database.ts';
import {
  cleanKeptPartitions,
  copyPartitionRows,
  dropDetachedPartitions,
  findExpiredPartition,
  findReplacement,
  finishPartitionSwap,
  preparePartitionSwap,
} from './queries/drop-partitions.ts';
import {
  deleteTenantEvents,
  expireDeadLetters,
  listTenantRetentions,
  stripPayloads,
} from './queries/expire-rows.ts';
import { withStoreErrors } from './store-error.ts';

export function createPostgresRetentionStore(database: Pick<Database, 'pool'>): RetentionStore {
  const pool = database.pool('upkeep');
  return {
    findExpired: (table, cutoffMs) => withStoreErrors(findExpiredPartition(pool, table, cutoffMs)),
    findReplacement: (table) => withStoreErrors(findReplacement(pool, table)),
    prepare: (partition, finishedSinceMs) =>
      withStoreErrors(preparePartitionSwap(pool, partition, finishedSinceMs)),
    copy: (replacement, after, maxRows) =>
      withStoreErrors(copyPartitionRows(pool, replacement, after, maxRows)),
    swap: (replacement) => withStoreErrors(finishPartitionSwap(pool, replacement)),
    dropDetached: () => withStoreErrors(dropDetachedPartitions(pool)),
    cleanReplacements: (table, finishedSinceMs, isStopped) =>
      withStoreErrors(cleanKeptPartitions(pool, table, finishedSinceMs, isStopped)),
    stripPayloads: (cutoffMs, max) => withStoreErrors(stripPayloads(pool, cutoffMs, max)),
    expireDeadLetters: (cutoffMs, max) => withStoreErrors(expireDeadLetters(pool, cutoffMs, max)),
    listTenantRetentions: () => withStoreErrors(listTenantRetentions(pool)),
    deleteTenantEvents: (tenant, cutoffMs, after, max) =>
      withStoreErrors(deleteTenantEvents(pool, tenant, cutoffMs, after, max)),
  };
}
