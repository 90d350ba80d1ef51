/**
 * The Kafka client, on `@platformatic/kafka`. Only this module and `record-lifetime.ts` import that package, and they are loaded
 * only if Kafka is configured. The client uses no consumer groups: which process reads which partition is decided in PostgreSQL.
 */
import { Consumer, type fetchV17 } from '@platformatic/kafka';
import type {
  FailedTopic,
  FetchedPartition,
  FetchPosition,
  KafkaClient,
  KafkaClientOptions,
} from './client.ts';
import { filterCommitted } from './committed-records.ts';
import { isDecompressionLimit, limitDecompression, MAX_DECOMPRESSED_BYTES } from './decompression-limit.ts';
import { type KafkaRecord, toRecordTime } from './record.ts';

type FetchResponse = fetchV17.FetchResponse;
type FetchResponsePartition = fetchV17.FetchResponsePartition;

const READ_COMMITTED = 1;
const CONNECT_TIMEOUT_MS = 5_000;
/** Added to the time that the broker waits for records. */
const ANSWER_TIMEOUT_MS = 10_000;
const EARLIEST = -2n;
const LATEST = -1n;

export function createPlatformaticClient(options: KafkaClientOptions): KafkaClient {
  limitDecompression();
  const consumer = new Consumer({
    clientId: 'posthorn',
    // The client requires a group, but never joins it.
    groupId: 'posthorn',
    bootstrapBrokers: [...options.brokers],
    // Retries of the client repeat a request to the same broker. The source retries with fresh metadata instead.
    retries: 0,
    connectTimeout: CONNECT_TIMEOUT_MS,
    requestTimeout: options.maxWaitMs + ANSWER_TIMEOUT_MS,
    autocommit: false,
    ...(options.tls === null ? {} : { tls: { ...options.tls } }),
    ...(options.sasl === null ? {} : { sasl: { ...options.sasl } }),
  });
  return clientOver(consumer, options);
}

/** Exported for tests. */
export function clientOver(consumer: Consumer, options: KafkaClientOptions): KafkaClient {
  return {
    describe: (topics) => describe(consumer, topics),
    async listOffsets(topic, which) {
      const timestamp = which === 'earliest' ? EARLIEST : LATEST;
      const offsets = await consumer.listOffsets({
        topics: [topic],
        timestamp,
        isolationLevel: READ_COMMITTED,
      });
      return offsets.get(topic) ?? [];
    },
    leaderOf(topic, partition) {
      const leader = consumer.currentMetadata?.topics.get(topic)?.partitions[partition]?.leader;
      return leader === undefined || leader < 0 ? null : leader;
    },
    fetch: (broker, positions) =>
      fetch(consumer, broker, positions, options).catch((error) => {
        if (!isDecompressionLimit(error)) throw error;
        return fetchSingleBatches(consumer, broker, positions, options);
      }),
    close: () => consumer.close(true),
  };
}

/** One request per topic: a topic that does not exist would fail a request for several topics. */
async function describe(consumer: Consumer, topics: readonly string[]) {
  const found = [];
  const missing: string[] = [];
  const failed: FailedTopic[] = [];
  let cluster = '';
  for (const name of topics) {
    try {
      const metadata = await consumer.metadata({ topics: [name], forceUpdate: true });
      const topic = metadata.topics.get(name)!;
      cluster = metadata.id;
      consumer.topics.untrack(name);
      consumer.topics.track(name);
      found.push({ name, id: topic.id, partitions: topic.partitionsCount });
    } catch (error) {
      const isMissing = isUnknownTopic(error);
      // No broker has answered. A request for each of the other topics would take longer than the lease.
      if (!isMissing && responseIn(error) === null) throw error;
      // Each fetch needs metadata of all tracked topics.
      consumer.topics.untrack(name);
      if (isMissing) missing.push(name);
      else failed.push({ name, error });
    }
  }
  return { cluster, topics: found, missing, failed };
}

const isUnknownTopic = (error: unknown): boolean =>
  error instanceof Error && /^Unknown topic /.test(error.message);

async function fetch(
  consumer: Consumer,
  node: number,
  positions: readonly FetchPosition[],
  { maxWaitMs, maxBytes }: KafkaClientOptions,
): Promise<FetchedPartition[]> {
  const names = new Map(positions.map(({ topicId, topic }) => [topicId, topic]));
  const wanted = new Map(positions.map((each) => [keyOf(each.topicId, each.partition), each.offset]));
  const topics = [...names.keys()].map((topicId) => ({
    topicId,
    partitions: positions
      .filter((each) => each.topicId === topicId)
      .map(({ partition, offset }) => ({
        partition,
        fetchOffset: offset,
        currentLeaderEpoch: -1,
        lastFetchedEpoch: -1,
        partitionMaxBytes: maxBytes,
      })),
  }));
  const response = await consumer
    .fetch({
      node,
      topics,
      minBytes: 1,
      maxBytes: 4 * maxBytes,
      maxWaitTime: maxWaitMs,
      isolationLevel: READ_COMMITTED,
    })
    .catch(errorsOfPartitions);
  return response.responses.flatMap(({ topicId, partitions }) =>
    partitions.flatMap((each) => {
      const offset = wanted.get(keyOf(topicId, each.partitionIndex));
      // A fetch session may answer for a partition that is not asked for any more.
      return offset === undefined ? [] : [toFetched(names.get(topicId)!, topicId, each, offset)];
    }),
  );
}

/**
 * Fetches one batch of each partition. If a batch alone is too large when it is decompressed, marks its partition as
 * too large. Leaves out the last partitions if all batches together are too large: the next fetch gets them.
 */
async function fetchSingleBatches(
  consumer: Consumer,
  node: number,
  positions: readonly FetchPosition[],
  options: KafkaClientOptions,
): Promise<FetchedPartition[]> {
  const fetched: FetchedPartition[] = [];
  let bytes = 0;
  for (const position of positions) {
    // A broker returns at least one batch, however large.
    const fetchOne = () => fetch(consumer, node, [position], { ...options, maxWaitMs: 1, maxBytes: 1 });
    try {
      // The answer that was refused has invalidated the fetch session, which fails one request.
      const answers = await fetchOne().catch((error) => {
        if (isDecompressionLimit(error)) throw error;
        return fetchOne();
      });
      fetched.push(...answers);
      bytes += answers.flatMap(({ records }) => records).reduce((sum, each) => sum + sizeOf(each), 0);
    } catch (error) {
      if (!isDecompressionLimit(error)) throw error;
      fetched.push(tooLarge(position));
    }
    if (bytes > MAX_DECOMPRESSED_BYTES) break;
  }
  return fetched;
}

const sizeOf = ({ key, value }: KafkaRecord): number => (key?.length ?? 0) + (value?.length ?? 0);

const tooLarge = ({ topicId, partition, offset }: FetchPosition): FetchedPartition => ({
  topicId,
  partition,
  errorCode: null,
  isTooLarge: true,
  logStart: -1n,
  logEnd: -1n,
  records: [],
  nextOffset: offset,
});

const keyOf = (topicId: string, partition: number): string => `${topicId}/${partition}`;

/** If a partition has an error, the client rejects the whole answer. Returns the partitions with errors only. */
function errorsOfPartitions(error: unknown): FetchResponse {
  const response = responseIn(error);
  const responses = (response?.responses ?? []).map((topic) => ({
    ...topic,
    partitions: topic.partitions.filter(({ errorCode }) => errorCode !== 0),
  }));
  if (response === null || !responses.some(({ partitions }) => partitions.length > 0)) throw error;
  return { ...response, responses };
}

/** Returns the answer of the broker that caused the error. Null: there was none. */
function responseIn(error: unknown): FetchResponse | null {
  if (!(error instanceof Error)) return null;
  const { response, errors, cause } = error as {
    response?: FetchResponse;
    errors?: unknown[];
    cause?: unknown;
  };
  if (response !== undefined) return response;
  for (const each of [...(errors ?? []), cause]) {
    const found = responseIn(each);
    if (found !== null) return found;
  }
  return null;
}

function toFetched(
  topic: string,
  topicId: string,
  answer: FetchResponsePartition,
  offset: bigint,
): FetchedPartition {
  const batches = answer.records ?? [];
  const last = batches.at(-1);
  const records: KafkaRecord[] = [];
  for (const batch of filterCommitted(batches, answer.abortedTransactions ?? []))
    for (const record of batch.records) {
      const at = batch.firstOffset + BigInt(record.offsetDelta);
      // A batch may begin before the position.
      if (at < offset) continue;
      records.push({
        topic,
        partition: answer.partitionIndex,
        offset: at,
        timestampMs: toRecordTime(batch.firstTimestamp + record.timestampDelta),
        key: record.key,
        value: record.value,
        headers: record.headers.map(([name, value]) => [name?.toString() ?? '', value] as const),
      });
    }
  const end = last === undefined ? offset : last.firstOffset + BigInt(last.lastOffsetDelta) + 1n;
  return {
    topicId,
    partition: answer.partitionIndex,
    errorCode: answer.errorCode === 0 ? null : answer.errorCode,
    isTooLarge: false,
    logStart: answer.logStartOffset,
    logEnd: answer.lastStableOffset >= 0n ? answer.lastStableOffset : answer.highWatermark,
    records,
    nextOffset: end > offset ? end : offset,
  };
}
