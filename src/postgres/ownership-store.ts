/**
 * Leases in PostgreSQL. Each session holds an advisory lock on a connection of its own: when a process dies, PostgreSQL
 * releases the lock immediately, and the other workers need not wait for `deadAfterMs`.
 */
import { randomBytes } from 'node:crypto';
import type { OwnershipSession, OwnershipStore, WorkerRegistration } from '../ports/ownership-store.ts';
import type { Client, Database } from './database.ts';
import { CHANNEL_NAMES } from './notifier-channels.ts';
import { moveLanes } from './queries/move-lanes.ts';
import {
  countSurplusShards,
  readFacts,
  readTimeline,
  registerWorker,
  releaseShards,
  removeDeadWorkers,
  renew,
  takeShards,
  unregisterWorker,
} from './queries/ownership.ts';
import { withStoreErrors } from './store-error.ts';

const MAX_DATABASE_SILENCE_MS = 5_000;

export function createPostgresOwnershipStore(database: Pick<Database, 'pool'>): OwnershipStore {
  return {
    connect: (worker, onLost) => withStoreErrors(connect(database, worker, onLost)),
    moveLanes: (workerId, lanes) => withStoreErrors(moveLanes(database.pool('lookup'), workerId, lanes)),
    readFacts: () => withStoreErrors(readFacts(database.pool('lookup'))),
    readTimeline: () => withStoreErrors(readTimeline(database.pool('lookup'))),
  };
}

async function connect(
  database: Pick<Database, 'pool'>,
  worker: WorkerRegistration,
  onLost: (error: unknown) => void,
): Promise<OwnershipSession> {
  const client = await database.pool('control').connect();
  let isOpen = true;
  let isRegistered = false;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    client.release(true);
  };
  client.on('error', (error) => {
    // Before it is registered, the statement that runs fails too, and `connect` throws.
    if (!isOpen || !isRegistered) return;
    close();
    onLost(error);
  });
  try {
    await client.query(`set statement_timeout = ${MAX_DATABASE_SILENCE_MS}`);
    const lockKey = randomBytes(8).readBigInt64BE().toString();
    await registerWorker(client, { ...worker, lockKey });
    isRegistered = true;
  } catch (error) {
    close();
    throw error;
  }
  return {
    renew: (workerId, options) => withStoreErrors(renew(client, workerId, options)),
    removeDeadWorkers: (silent) => withStoreErrors(removeDeadWorkers(client, silent)),
    takeShards: (workerId, crashWindowMs, emptyRegion) =>
      withStoreErrors(takeShards(client, workerId, crashWindowMs, emptyRegion)),
    countSurplusShards: (workerId) => withStoreErrors(countSurplusShards(client, workerId)),
    async releaseShards(workerId, shards) {
      await withStoreErrors(releaseShards(client, workerId, shards));
      await withStoreErrors(announceFreeShards(client));
    },
    async unregister(workerId) {
      await withStoreErrors(unregisterWorker(client, workerId));
      await withStoreErrors(announceFreeShards(client));
    },
    close,
  };
}

async function announceFreeShards(client: Client): Promise<void> {
  await client.query('select pg_notify($1, $2)', [CHANNEL_NAMES.shards, '']);
}
