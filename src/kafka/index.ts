export { type AcceptClient, KafkaEventLog } from './accept-log.ts';
export { AcceptTopicReader } from './accept-topic-reader.ts';
export type { ClusterDescription, KafkaClient, KafkaClientOptions } from './client.ts';
export { type MappedRecord, type MappingConfig, RecordMapping, UnmappedRecordError } from './mapping.ts';
export type { PartitionState } from './partition-state.ts';
export { headerOf, type KafkaHeader, type KafkaRecord } from './record.ts';
export { type EventSink, RecordWriter, type RecordWriterOptions } from './record-writer.ts';
export { KafkaSource, type KafkaSourceOptions } from './source.ts';
export { StoredWatch } from './stored-watch.ts';
export { WaitingRecords } from './waiting-records.ts';

/** Loads the client, which is a large package, only if Kafka is configured. */
export async function loadKafkaClient(
  options: import('./client.ts').KafkaClientOptions,
): Promise<import('./client.ts').KafkaClient> {
  const { createPlatformaticClient } = await import('./platformatic-client.ts');
  return createPlatformaticClient(options);
}

/** The milliseconds after which Kafka has deleted a record of these topics. Infinity: never. */
export async function loadRecordLifetime(
  options: import('./client.ts').KafkaClientOptions,
  topics: readonly string[],
): Promise<number> {
  const { readRecordLifetime } = await import('./record-lifetime.ts');
  return readRecordLifetime(options, topics);
}

/** Loads the client that writes to the accept topic. */
export async function loadAcceptClient(
  ...options: Parameters<typeof import('./accept-client.ts').createAcceptClient>
): Promise<import('./accept-log.ts').AcceptClient> {
  const { createAcceptClient } = await import('./accept-client.ts');
  return createAcceptClient(...options);
}
