import type { KafkaStore } from '../ports/kafka-store.ts';
import type { Database } from './database.ts';
import {
  addPartitions,
  listKnownTopics,
  readPositions,
  recordAwaitedTopics,
  releasePartitions,
  removeKafkaConsumer,
  renewKafkaLease,
} from './queries/kafka-leases.ts';
import {
  advancePartition,
  countRejectedRecords,
  countWaitingRecords,
  deleteWaitingRecords,
  readDeletedTenants,
  readWaitingRecords,
  rejectWaitingRecords,
  setWaitingTenants,
} from './queries/kafka-records.ts';
import { withStoreErrors } from './store-error.ts';

/** Leases have the connections of lookups, so that they are renewed while a large batch is stored. */
export function createPostgresKafkaStore(database: Pick<Database, 'pool'>): KafkaStore {
  const leases = database.pool('lookup');
  const records = database.pool('outbox');
  return {
    listKnownTopics: (cluster) => withStoreErrors(listKnownTopics(leases, cluster)),
    readPositions: (topic) => withStoreErrors(readPositions(leases, topic)),
    recordAwaitedTopics: (names) => withStoreErrors(recordAwaitedTopics(leases, names)),
    addPartitions: (cluster, partitions) => withStoreErrors(addPartitions(leases, cluster, partitions)),
    renewLease: (lease, reports) => withStoreErrors(renewKafkaLease(leases, lease, reports)),
    releasePartitions: (consumerId, ids) => withStoreErrors(releasePartitions(leases, consumerId, ids)),
    removeConsumer: (consumerId) => withStoreErrors(removeKafkaConsumer(leases, consumerId)),
    advance: (advance) => withStoreErrors(advancePartition(records, advance)),
    readDeletedTenants: (tenants) => withStoreErrors(readDeletedTenants(records, tenants)),
    readWaiting: (partitionId, options) => withStoreErrors(readWaitingRecords(records, partitionId, options)),
    setWaitingTenants: (rows) => withStoreErrors(setWaitingTenants(records, rows)),
    rejectWaiting: (rows) => withStoreErrors(rejectWaitingRecords(records, rows)),
    deleteWaiting: (seqs) => withStoreErrors(deleteWaitingRecords(records, seqs)),
    countWaiting: (partitionId) => withStoreErrors(countWaitingRecords(records, partitionId)),
    countRejected: (partitionId, max) => withStoreErrors(countRejectedRecords(records, partitionId, max)),
  };
}
