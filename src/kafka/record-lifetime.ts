/**
 * How long Kafka may keep a record, by the settings of its topic. Posthorn cannot delete records in Kafka, so an
 * operator who expunges data needs this time. Each call opens a new connection, because calls are rare.
 */
import { Admin, ConfigResourceTypes } from '@platformatic/kafka';
import type { KafkaClientOptions } from './client.ts';

/** Short, because an API request waits for the answer. */
const TIMEOUT_MS = 3_000;
const CLEANUP = 'cleanup.policy';
const RETENTION = 'retention.ms';
const SEGMENT = 'segment.ms';

/** Returns the milliseconds after which the last of these topics deletes a record. Infinity: one of them never does. */
export async function readRecordLifetime(
  options: Pick<KafkaClientOptions, 'brokers' | 'tls' | 'sasl'>,
  topics: readonly string[],
): Promise<number> {
  const admin = new Admin({
    clientId: 'posthorn',
    bootstrapBrokers: [...options.brokers],
    retries: 0,
    connectTimeout: TIMEOUT_MS,
    requestTimeout: TIMEOUT_MS,
    ...(options.tls === null ? {} : { tls: { ...options.tls } }),
    ...(options.sasl === null ? {} : { sasl: { ...options.sasl } }),
  });
  try {
    const described = await admin.describeConfigs({
      resources: topics.map((resourceName) => ({
        resourceType: ConfigResourceTypes.TOPIC,
        resourceName,
        configurationKeys: [CLEANUP, RETENTION, SEGMENT],
      })),
    });
    return Math.max(...described.map(({ configs }) => lifetimeOf(configs)));
  } finally {
    await admin.close();
  }
}

interface TopicSetting {
  readonly name: string;
  readonly value?: string | null | undefined;
}

/**
 * Kafka deletes whole segments. A segment expires with its youngest record, and takes new records for up to
 * `segment.ms`.
 */
function lifetimeOf(settings: readonly TopicSetting[]): number {
  const readSetting = (name: string): string =>
    settings.find((setting) => setting.name === name)?.value ?? '';
  const retentionMs = Number.parseInt(readSetting(RETENTION), 10);
  const segmentMs = Number.parseInt(readSetting(SEGMENT), 10);
  if (Number.isNaN(retentionMs) || Number.isNaN(segmentMs))
    throw new Error('Kafka does not say how long it keeps the records of a topic.');
  const deletesByAge = readSetting(CLEANUP).split(',').includes('delete') && retentionMs >= 0;
  return deletesByAge ? retentionMs + segmentMs : Number.POSITIVE_INFINITY;
}
