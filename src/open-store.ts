/** Prepares the database and makes the PostgreSQL implementations of the ports. */
import { EventCatalogue } from './catalogue/event-catalogue.ts';
import type { ConfigWithKeys } from './config/index.ts';
import { publicId } from './domain/ids.ts';
import { ApiKeyFormat } from './manage/api-keys.ts';
import type { ArchiveRequests } from './ports/archive-store.ts';
import type { CatalogueStore } from './ports/catalogue-store.ts';
import type { ConversionStore } from './ports/conversion-store.ts';
import type { DeliveryQueue } from './ports/delivery-queue.ts';
import type { EndpointDirectory } from './ports/endpoint-directory.ts';
import type { EventLookup, EventStore, IdTimes } from './ports/event-store.ts';
import type { FanOutStore } from './ports/fan-out-store.ts';
import type { KafkaStore } from './ports/kafka-store.ts';
import type { OperationalStore } from './ports/operational-store.ts';
import type { OutboxStore } from './ports/outbox-store.ts';
import type { OwnershipStore } from './ports/ownership-store.ts';
import type { PeerDirectory } from './ports/peer-directory.ts';
import type { TenantLimits } from './ports/rate-limits.ts';
import type { RetentionStore } from './ports/retention-store.ts';
import type { StatisticsStore } from './ports/statistics-store.ts';
import type { TaskStore } from './ports/task-store.ts';
import type { UpkeepStore } from './ports/upkeep-store.ts';
import { createPostgresArchiveRequests } from './postgres/archive-store.ts';
import { createPostgresCatalogueStore } from './postgres/catalogue-store.ts';
import { createPostgresConversionStore } from './postgres/conversion-store.ts';
import type { Database } from './postgres/database.ts';
import { createPostgresDeliveryQueue } from './postgres/delivery-queue.ts';
import { createEndpointCache } from './postgres/endpoint-cache.ts';
import { createPostgresEventLookup, createPostgresEventStore } from './postgres/event-store.ts';
import { createPostgresFanOutStore } from './postgres/fan-out-store.ts';
import { createPostgresKafkaStore } from './postgres/kafka-store.ts';
import { migrate } from './postgres/migrate.ts';
import { createPostgresOperationalStore } from './postgres/operational-store.ts';
import { createPostgresOutboxStore } from './postgres/outbox-store.ts';
import { createPostgresOwnershipStore } from './postgres/ownership-store.ts';
import { ensurePartitions } from './postgres/partitions.ts';
import { createPostgresPeerDirectory } from './postgres/peer-directory.ts';
import { readChecksumSecret } from './postgres/queries/keys.ts';
import { markOperatorEndpoints } from './postgres/queries/mark-operator-endpoints.ts';
import { writePublishLimits } from './postgres/queries/outbox.ts';
import { createPostgresRetentionStore } from './postgres/retention-store.ts';
import { createSecretBox, type SecretBox } from './postgres/secret-box.ts';
import { createPostgresStatisticsStore } from './postgres/statistics-store.ts';
import { createPostgresTaskStore } from './postgres/task-store.ts';
import { createPostgresTenantLimits } from './postgres/tenant-limits.ts';
import { createPostgresUpkeepStore } from './postgres/upkeep-store.ts';
import type { Log } from './telemetry/log.ts';

export interface Store {
  readonly database: Database;
  readonly eventStore: EventStore;
  readonly queue: DeliveryQueue;
  readonly eventLookup: EventLookup;
  readonly fanOuts: FanOutStore;
  readonly ownershipStore: OwnershipStore;
  readonly tenantLimits: TenantLimits;
  readonly catalogueStore: CatalogueStore;
  readonly catalogue: EventCatalogue;
  readonly outbox: OutboxStore;
  readonly kafka: KafkaStore;
  readonly tasks: TaskStore;
  readonly statistics: StatisticsStore;
  readonly operational: OperationalStore;
  readonly upkeep: UpkeepStore;
  readonly retention: RetentionStore;
  readonly archive: ArchiveRequests;
  readonly conversions: ConversionStore;
  readonly endpoints: EndpointDirectory;
  readonly peers: PeerDirectory;
  readonly secretBox: SecretBox;
  readonly keyFormat: ApiKeyFormat;
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
  const upkeepPool = database.pool('upkeep');
  const makePartitions = async (idTimes?: IdTimes): Promise<void> => {
    const created = await ensurePartitions(upkeepPool, { days: config.partitionDays, ...idTimes });
    if (created.length > 0) log.info({ partitions: created.length }, 'created partitions');
  };
  const applied = await migrate(upkeepPool);
  if (applied.length > 0) log.info({ applied }, 'migrated the database');
  await makePartitions();
  await markOperatorEndpoints(upkeepPool, config.operatorTenant);
  await writePublishLimits(database.pool('api'), config);
  const secretBox = createSecretBox(config.encryptionKey, config.previousEncryptionKeys);
  const endpoints = createEndpointCache(database.pool('lookup'), secretBox, (id, error) =>
    onProblem(`open the secrets of ${publicId('ep', id)}`, error),
  );
  await endpoints.refresh();
  const catalogueStore = createPostgresCatalogueStore(database);
  const catalogue = new EventCatalogue({ store: catalogueStore, onProblem });
  await catalogue.refresh();
  return {
    database,
    eventStore: createPostgresEventStore({ database, ensurePartitions: makePartitions }),
    queue: createPostgresDeliveryQueue(database),
    eventLookup: createPostgresEventLookup(database),
    fanOuts: createPostgresFanOutStore(database),
    ownershipStore: createPostgresOwnershipStore(database),
    tenantLimits: createPostgresTenantLimits(database),
    catalogueStore,
    catalogue,
    outbox: createPostgresOutboxStore(database),
    kafka: createPostgresKafkaStore(database),
    tasks: createPostgresTaskStore(database, {
      operatorTenant: config.operatorTenant,
      settleMs: config.expungeSettleMs,
    }),
    statistics: createPostgresStatisticsStore(database),
    operational: createPostgresOperationalStore(database),
    upkeep: createPostgresUpkeepStore({ database, ensurePartitions: makePartitions, secretBox }),
    retention: createPostgresRetentionStore(database),
    archive: createPostgresArchiveRequests(database),
    conversions: createPostgresConversionStore(database),
    endpoints,
    peers: createPostgresPeerDirectory(database),
    secretBox,
    keyFormat: new ApiKeyFormat(await readChecksumSecret(database.pool('api'))),
  };
}
