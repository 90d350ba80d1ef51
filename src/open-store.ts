/** Prepares the database and makes the PostgreSQL implementations of the ports. */
import type { ConfigWithKeys } from './config/index.ts';
import { publicId } from './domain/ids.ts';
import type { AcceptLog, EventLookup } from './ports/accept-log.ts';
import type { DeliveryQueue } from './ports/delivery-queue.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { OutboxStore } from './ports/outbox-store.ts';
import type { OwnershipStore } from './ports/ownership-store.ts';
import type { TenantLimits } from './ports/rate-limits.ts';
import { createPostgresAcceptLog, createPostgresEventLookup } from './postgres/accept-log.ts';
import type { Database } from './postgres/database.ts';
import { createPostgresDeliveryQueue } from './postgres/delivery-queue.ts';
import { createEndpointCache } from './postgres/endpoint-cache.ts';
import { migrate } from './postgres/migrate.ts';
import { createPostgresOutboxStore } from './postgres/outbox-store.ts';
import { createPostgresOwnershipStore } from './postgres/ownership-store.ts';
import { ensurePartitions } from './postgres/partitions.ts';
import { writePublishLimits } from './postgres/queries/outbox.ts';
import { createSecretBox, type SecretBox } from './postgres/secret-box.ts';
import { createPostgresTenantLimits } from './postgres/tenant-limits.ts';
import type { Log } from './telemetry/log.ts';

export interface Store {
  readonly database: Database;
  readonly acceptLog: AcceptLog;
  readonly queue: DeliveryQueue;
  readonly eventLookup: EventLookup;
  readonly outbox: OutboxStore;
  readonly ownershipStore: OwnershipStore;
  readonly tenantLimits: TenantLimits;
  readonly endpoints: EndpointDirectory;
  readonly secretBox: SecretBox;
  /** Creates the partitions of the next days, and those since `oldestMs`. */
  makePartitions(oldestMs?: number): Promise<void>;
}

export interface OpenStoreOptions {
  readonly config: ConfigWithKeys;
  readonly log: Log;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Migrates the database, creates partitions and reads all endpoints. */
export async function openStore(
  database: Database,
  { config, log, onProblem }: OpenStoreOptions,
): Promise<Store> {
  const pool = database.pool('api');
  const makePartitions = async (oldestMs?: number): Promise<void> => {
    const created = await ensurePartitions(pool, { days: config.partitionDays, oldestMs });
    if (created.length > 0) log.info({ partitions: created.length }, 'created partitions');
  };
  const applied = await migrate(pool);
  if (applied.length > 0) log.info({ applied }, 'migrated the database');
  await makePartitions();
  await writePublishLimits(pool, config);
  const secretBox = createSecretBox(config.encryptionKey, config.previousEncryptionKeys);
  const endpoints = createEndpointCache(database.pool('lookup'), secretBox, (id, error) =>
    onProblem(`open the secrets of ${publicId('ep', id)}`, error),
  );
  await endpoints.refresh();
  return {
    database,
    acceptLog: createPostgresAcceptLog({ database, ensurePartitions: makePartitions }),
    queue: createPostgresDeliveryQueue(database),
    eventLookup: createPostgresEventLookup(database),
    outbox: createPostgresOutboxStore(database),
    ownershipStore: createPostgresOwnershipStore(database),
    tenantLimits: createPostgresTenantLimits(database),
    endpoints,
    secretBox,
    makePartitions,
  };
}
