/** Composes the log that events are accepted in before they are stored (`POSTHORN_BACKBONE=kafka`). */
import { createHash } from 'node:crypto';
import type { UnstoredEvents } from './api/events/unstored-events.ts';
import type { ComposeOptions } from './compose-app.ts';
import type { LogPorts } from './create-ingest.ts';
import { clientOptionsOf } from './create-kafka-source.ts';
import { idPrefixes, publicId, type Uuid } from './domain/ids.ts';
import type { Service } from './domain/lifecycle.ts';
import { Problem } from './domain/problem.ts';
import { ENVELOPE_BYTES } from './ingest/index.ts';
import { KafkaEventLog, loadAcceptClient, loadKafkaClient, StoredWatch } from './kafka/index.ts';
import type { Store } from './open-store.ts';
import { createPostgresClosedTenants, createPostgresKeyClaims } from './postgres/key-claims.ts';
import { isSetAside } from './postgres/queries/kafka-rejected.ts';
import { readChecksumSecret } from './postgres/queries/keys.ts';

export interface EventLogParts {
  /** Identifies the records of this deployment in the accept topic. */
  readonly deployment: string;
  /** Null: events are stored in PostgreSQL at once. */
  readonly eventLog: (LogPorts & { readonly log: KafkaEventLog }) | null;
  /** Null: Kafka is not configured. */
  readonly unstoredEvents: (UnstoredEvents & Service) | null;
}

/** How long a request for an event waits until the event is stored. */
const MAX_WAIT_MS = 5_000;
const NAME_LENGTH = 16;

export async function createEventLog(
  { config, clock, onProblem }: Pick<ComposeOptions, 'config' | 'clock' | 'onProblem'>,
  store: Store,
): Promise<EventLogParts> {
  const pool = store.database.pool('api');
  // Not the cluster's identifier: it changes when PostgreSQL is upgraded, and records must stay readable.
  const deployment = createHash('sha256')
    .update('posthorn accept topic')
    .update(await readChecksumSecret(pool))
    .digest('hex')
    .slice(0, NAME_LENGTH);
  if (config.kafkaBrokers.length === 0) return { deployment, eventLog: null, unstoredEvents: null };
  const isInUse = config.backbone === 'kafka';
  const watch = new StoredWatch({
    connect: async () => loadKafkaClient(clientOptionsOf(config)),
    store: store.kafka,
    topic: config.kafkaAcceptTopic,
    isInUse,
    clock,
    maxWaitMs: MAX_WAIT_MS,
    onProblem,
  });
  const unstoredEvents: UnstoredEvents & Service = {
    start() {},
    stop: () => watch.stop(),
    async waitUntilStored(id) {
      if (!(await watch.waitUntilStored())) throw notStoredYet(id);
      if (await isSetAside(pool, config.kafkaAcceptTopic, id)) throw setAside(id);
    },
  };
  if (!isInUse) return { deployment, eventLog: null, unstoredEvents };
  const log = new KafkaEventLog({
    connect: async () =>
      loadAcceptClient(clientOptionsOf(config), {
        name: config.kafkaAcceptTopic,
        partitions: config.kafkaAcceptPartitions,
        replicas: config.kafkaAcceptReplicas,
        minInsync: config.kafkaAcceptMinInsync,
        retentionMs: config.kafkaAcceptRetentionMs,
        maxRecordBytes: config.maxEventBytes + ENVELOPE_BYTES,
      }),
    deployment,
    clock,
    onProblem,
  });
  const eventLog = {
    log,
    claims: createPostgresKeyClaims(store.database),
    closedTenants: createPostgresClosedTenants(store.database),
  };
  return { deployment, eventLog, unstoredEvents };
}

const notStoredYet = (id: Uuid): Problem =>
  new Problem(
    'unavailable',
    `The database does not have ${publicId(idPrefixes.event, id)} yet. If it was accepted, it is in Kafka and will be stored. Try again later.`,
    { retryAfterSeconds: 5 },
  );

const setAside = (id: Uuid): Problem =>
  new Problem(
    'unavailable',
    `${publicId(idPrefixes.event, id)} was accepted, but could not be stored. An operator can see why, and retry it: posthorn kafka rejected.`,
    { retryAfterSeconds: 60 },
  );
