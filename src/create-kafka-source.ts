/** Composes the source that reads events from Kafka. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { AppMetrics } from './app-metrics.ts';
import type { Config } from './config/index.ts';
import type { Ingest } from './create-ingest.ts';
import { isReservedHeader } from './deliver/index.ts';
import type { Clock } from './domain/clock.ts';
import type { NewEvent } from './domain/event.ts';
import { newId } from './domain/ids.ts';
import { readTraceContext } from './domain/trace-context.ts';
import { readEventFromParts, readJsonFields } from './ingest/index.ts';
import {
  AcceptTopicReader,
  type ClusterDescription,
  type KafkaClient,
  type KafkaClientOptions,
  KafkaSource,
  loadKafkaClient,
  loadRecordLifetime,
  type MappedRecord,
  RecordMapping,
  RecordWriter,
  WaitingRecords,
} from './kafka/index.ts';
import type { KafkaStore } from './ports/kafka-store.ts';
import type { Log } from './telemetry/log.ts';

export interface KafkaSourceParts {
  readonly config: Config;
  readonly store: { readonly kafka: KafkaStore };
  /** Identifies the records of the accept topic that belong to this database. */
  readonly deployment: string;
  readonly ingest: Pick<Ingest, 'committedEvents' | 'tenantRates'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'error'>;
  readonly metrics: AppMetrics | null;
  readonly onProblem: (what: string, error: unknown) => void;
  /** Default: a client of the brokers in the configuration. */
  readonly connect?: () => Promise<KafkaClient>;
}

export function createKafkaSource({
  config,
  store: { kafka: store },
  deployment,
  ingest,
  clock,
  log,
  metrics,
  onProblem,
  connect = async () => loadKafkaClient({ ...clientOptionsOf(config), maxWaitMs: maxWaitMsOf(config) }),
}: KafkaSourceParts): KafkaSource {
  const mapping = new RecordMapping(
    {
      type: config.kafkaType,
      tenant: config.kafkaTenant,
      idempotencyKey: config.kafkaIdempotencyKey,
      channels: config.kafkaChannels,
      timestamp: config.kafkaTimestamp,
      data: config.kafkaData,
    },
    (json) => readJsonFields(json, config.maxNesting),
  );
  const shared = {
    store,
    sink: ingest.committedEvents,
    mapping,
    readEvent: (mapped: MappedRecord) => readEvent(mapped, config),
    acceptTopic: new AcceptTopicReader(config.kafkaAcceptTopic, deployment, store),
    tenantRates: ingest.tenantRates,
    clock,
    batchRows: config.ingestBatchRows,
    onStored: (topic: string, records: number) => metrics?.kafka.onStored(topic, records),
    onRejected: (
      record: { readonly topic: string; readonly partition: number; readonly offset: string },
      reason: string,
    ) => {
      metrics?.kafka.onRejected(record.topic);
      log.error({ ...record, reason }, 'a Kafka record was rejected');
    },
    onProblem,
  };
  return new KafkaSource({
    id: newId(clock.now()),
    name: `${hostname()}:${process.pid}`,
    store,
    connect,
    writer: new RecordWriter({
      ...shared,
      batchBytes: config.ingestBatchBytes,
      maxWaiting: config.kafkaOverflowRecords,
      maxRejected: config.kafkaRejectedRecords,
    }),
    waitingRecords: new WaitingRecords(shared),
    clock,
    topics: config.kafkaSourceTopics,
    accept: { name: config.kafkaAcceptTopic, isInUse: config.backbone === 'kafka' },
    start: config.kafkaStart,
    renewMs: config.kafkaRenewMs,
    leaseMs: config.kafkaLeaseMs,
    onRecordsLost: ({ topic, partition }, records) =>
      log.error(
        { topic, partition, records: Number(records) },
        'Kafka deleted records before they were read',
      ),
    onProblem,
  });
}

/**
 * A broker has one fetch at a time. A partition whose records are stored meanwhile waits until it ends, so events that clients
 * publish need a short one.
 */
const ACCEPT_MAX_WAIT_MS = 20;

const maxWaitMsOf = ({ backbone, kafkaMaxWaitMs }: Config): number =>
  backbone === 'kafka' ? Math.min(kafkaMaxWaitMs, ACCEPT_MAX_WAIT_MS) : kafkaMaxWaitMs;

/** Asks Kafka how long it may hold a record, in milliseconds. Null: Kafka is not configured. */
export function recordLifetimeReader(config: Config): (() => Promise<number>) | null {
  const topics = kafkaTopicsOf(config);
  if (config.kafkaBrokers.length === 0 || topics.length === 0) return null;
  return async () => loadRecordLifetime(clientOptionsOf(config), topics);
}

/** The producer has already committed the record, so any text is accepted as idempotency key, as from the outbox. */
function readEvent({ fields, data, traceparent }: MappedRecord, config: Config): NewEvent {
  return readEventFromParts(fields, data, config, {
    keyTenant: null,
    idempotencyKey: null,
    isReservedHeader,
    acceptsAnyKey: true,
    trace: readTraceContext(traceparent, null),
  });
}

/** Asks Kafka about the topics that are read. Throws if no broker answers. */
export async function describeKafka(config: Config): Promise<ClusterDescription> {
  const client = await loadKafkaClient(clientOptionsOf(config));
  try {
    return await client.describe(kafkaTopicsOf(config));
  } finally {
    await client.close();
  }
}

/** The topics that are read. */
export const kafkaTopicsOf = ({
  kafkaSourceTopics,
  kafkaAcceptTopic,
  backbone,
}: Config): readonly string[] =>
  backbone === 'kafka' ? [...kafkaSourceTopics, kafkaAcceptTopic] : kafkaSourceTopics;

export function clientOptionsOf(config: Config): KafkaClientOptions {
  const { kafkaSasl, kafkaUsername, kafkaPassword } = config;
  const read = (file: string | null): Buffer | undefined => (file === null ? undefined : readFileSync(file));
  return {
    brokers: config.kafkaBrokers,
    tls: config.kafkaTls
      ? { ca: read(config.kafkaTlsCa), cert: read(config.kafkaTlsCert), key: read(config.kafkaTlsKey) }
      : null,
    sasl:
      kafkaSasl === 'none'
        ? null
        : {
            mechanism: kafkaSasl.toUpperCase() as 'PLAIN',
            username: kafkaUsername!,
            password: kafkaPassword!,
          },
    maxWaitMs: config.kafkaMaxWaitMs,
    maxBytes: config.kafkaFetchBytes,
  };
}
