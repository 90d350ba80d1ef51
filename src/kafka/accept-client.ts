/** The client of the accept topic, on `@platformatic/kafka`. Loaded only with `POSTHORN_BACKBONE=kafka`. */
import { setTimeout } from 'node:timers/promises';
import { Admin, ConfigResourceTypes, noopSerializer, ProduceAcks, Producer } from '@platformatic/kafka';
import { BatchTooLargeError } from '../ports/event-log.ts';
import type { AcceptClient } from './accept-log.ts';
import type { KafkaClientOptions } from './client.ts';

export interface AcceptTopic {
  readonly name: string;
  readonly partitions: number;
  readonly replicas: number;
  readonly minInsync: number;
  readonly retentionMs: number;
  /** The largest record that must fit. */
  readonly maxRecordBytes: number;
}

export type ConnectionOptions = Pick<KafkaClientOptions, 'brokers' | 'tls' | 'sasl'>;

const CONNECT_TIMEOUT_MS = 3_000;
/** How long the leader waits for the other brokers. */
const REPLICATION_TIMEOUT_MS = 3_000;
const ANSWER_TIMEOUT_MS = 4_000;

export function createAcceptClient(connection: ConnectionOptions, topic: AcceptTopic): AcceptClient {
  const { brokers, tls, sasl } = connection;
  const base = {
    clientId: 'posthorn',
    bootstrapBrokers: [...brokers],
    // Retries of the client repeat a request to the same broker. The accept stage retries with fresh metadata instead.
    retries: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: ANSWER_TIMEOUT_MS,
    ...(tls === null ? {} : { tls: { ...tls } }),
    ...(sasl === null ? {} : { sasl: { ...sasl } }),
  };
  const producer = new Producer<Buffer, Buffer, Buffer, Buffer>({
    ...base,
    timeout: REPLICATION_TIMEOUT_MS,
    repeatOnStaleMetadata: false,
    autocreateTopics: false,
    serializers: {
      key: noopSerializer,
      value: noopSerializer,
      headerKey: noopSerializer,
      headerValue: noopSerializer,
    },
  });
  return {
    async openTopic() {
      const admin = new Admin(base);
      try {
        await createTopic(admin, topic);
        await checkTopic(admin, topic);
        const metadata = await retryUntilKnown(() =>
          admin.metadata({ topics: [topic.name], forceUpdate: true }),
        );
        return metadata.topics.get(topic.name)!.partitionsCount;
      } finally {
        await admin.close();
      }
    },
    async append(partition, records) {
      try {
        await producer.send({
          acks: ProduceAcks.ALL,
          messages: records.map(({ key, value, headers }) => ({
            topic: topic.name,
            partition,
            key,
            value,
            headers: new Map(headers),
          })),
        });
      } catch (error) {
        if (TOO_LARGE.some((apiId) => hasApiId(error, apiId)))
          throw new BatchTooLargeError('Kafka does not take a batch of this size', { cause: error });
        // The leader may have changed.
        producer.clearMetadata();
        throw error;
      }
    },
    close: () => producer.close(true),
  };
}

/** The topic's `max.message.bytes`, and its `segment.bytes`. */
const TOO_LARGE = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'];

async function createTopic(admin: Admin, topic: AcceptTopic): Promise<void> {
  const settings = {
    'min.insync.replicas': topic.minInsync,
    'cleanup.policy': 'delete',
    'retention.ms': topic.retentionMs,
    'retention.bytes': -1,
    'max.message.bytes': Math.max(DEFAULT_MESSAGE_BYTES, topic.maxRecordBytes),
    // By the clock of the broker: a wrong clock of a node must not make records look expired.
    'message.timestamp.type': 'LogAppendTime',
    // A broker that lacks confirmed records must never lead.
    'unclean.leader.election.enable': 'false',
  };
  try {
    await admin.createTopics({
      topics: [topic.name],
      partitions: topic.partitions,
      replicas: topic.replicas,
      configs: Object.entries(settings).map(([name, value]) => ({ name, value: String(value) })),
    });
  } catch (error) {
    if (!hasApiId(error, 'TOPIC_ALREADY_EXISTS')) throw error;
  }
}

const DEFAULT_MESSAGE_BYTES = 2 ** 21;

/** Throws if the topic, which an operator may have created, could lose confirmed records or refuse large ones. */
async function checkTopic(admin: Admin, topic: AcceptTopic): Promise<void> {
  const settings = await retryUntilKnown(() => readSettings(admin, topic.name));
  const problem = findUnsafeSetting(settings, topic);
  if (problem !== null) throw new Error(`the topic "${topic.name}" cannot be used: ${problem}`);
}

const MAX_TRIES = 10;
const TRY_EVERY_MS = 200;

/** A broker does not know a topic right after another one has created it. */
async function retryUntilKnown<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
      await setTimeout(TRY_EVERY_MS);
    }
  }
}

const CHECKED = [
  'cleanup.policy',
  'unclean.leader.election.enable',
  'retention.bytes',
  'retention.ms',
  'message.timestamp.type',
  'min.insync.replicas',
  'max.message.bytes',
];
/** Room for a batch of records (`MAX_BATCH_BYTES` of the accept stage). Kafka's default is a little more. */
const MIN_MESSAGE_BYTES = 2 ** 20;

async function readSettings(admin: Admin, resourceName: string): Promise<ReadonlyMap<string, string>> {
  const [described] = await admin.describeConfigs({
    resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName, configurationKeys: CHECKED }],
  });
  return new Map((described?.configs ?? []).map(({ name, value }) => [name, value ?? '']));
}

/** Returns what is wrong with the settings of the topic and what to set instead. Null: nothing. */
export function findUnsafeSetting(
  settings: ReadonlyMap<string, string>,
  {
    minInsync,
    maxRecordBytes,
    retentionMs,
  }: Pick<AcceptTopic, 'minInsync' | 'maxRecordBytes' | 'retentionMs'>,
): string | null {
  if (settings.get('cleanup.policy') !== 'delete')
    return 'cleanup.policy must be "delete", because compaction deletes records that are not stored yet';
  if (settings.get('unclean.leader.election.enable') !== 'false')
    return 'unclean.leader.election.enable must be "false", because a broker without confirmed records could become the leader';
  if (Number(settings.get('retention.bytes')) >= 0)
    return 'retention.bytes must be -1, because Kafka would delete records that are not stored yet';
  const kept = Number(settings.get('retention.ms'));
  if (kept >= 0 && kept < retentionMs)
    return `retention.ms is ${kept} and must be -1 or at least ${retentionMs} (POSTHORN_KAFKA_ACCEPT_RETENTION_MS), because Kafka would delete records that are not stored yet`;
  if (settings.get('message.timestamp.type') !== 'LogAppendTime')
    return 'message.timestamp.type must be "LogAppendTime", because the clock of a node may be wrong, and Kafka would delete its records too early';
  const insync = Number(settings.get('min.insync.replicas'));
  if (insync < minInsync)
    return `min.insync.replicas is ${insync} and must be at least ${minInsync} (POSTHORN_KAFKA_ACCEPT_MIN_INSYNC)`;
  const limit = Number(settings.get('max.message.bytes'));
  const needed = Math.max(MIN_MESSAGE_BYTES, maxRecordBytes);
  return limit >= needed
    ? null
    : `max.message.bytes is ${limit} and must be at least ${needed} (1 MiB, or POSTHORN_MAX_EVENT_BYTES plus 64 KiB if that is more)`;
}

/** The client wraps the error of the broker. */
function hasApiId(error: unknown, apiId: string): boolean {
  if (!(error instanceof Error)) return false;
  const { errors = [], cause } = error as { errors?: readonly unknown[]; cause?: unknown };
  return (
    (error as { apiId?: string }).apiId === apiId || [...errors, cause].some((each) => hasApiId(each, apiId))
  );
}
