import type { Consumer, FetchOptions } from '@platformatic/kafka';
import { expect, test } from 'vitest';
import type { FetchPosition } from './client.ts';
import { DecompressionLimitError } from './decompression-limit.ts';
import { clientOver } from './platformatic-client.ts';

type Fetch = Pick<FetchOptions<unknown, unknown, unknown, unknown>, 'topics'>;

const OPTIONS = { brokers: [], tls: null, sasl: null, maxWaitMs: 100, maxBytes: 1000 };

const position = (partition: number): FetchPosition => ({
  topic: 'orders',
  topicId: 't',
  partition,
  offset: 7n,
});

const batch = (firstTimestamp = 0n) => ({
  firstOffset: 7n,
  lastOffsetDelta: 0,
  firstTimestamp,
  attributes: 0,
  producerId: -1n,
  records: [{ offsetDelta: 0, timestampDelta: 0n, key: null, value: Buffer.from('{}'), headers: [] }],
});

const answerFor = ({ topics }: Fetch, timestamp = 0n) => ({
  responses: topics.map(({ topicId, partitions }) => ({
    topicId,
    partitions: partitions.map(({ partition }) => ({
      partitionIndex: partition,
      errorCode: 0,
      highWatermark: 9n,
      lastStableOffset: 9n,
      logStartOffset: 0n,
      abortedTransactions: [],
      records: [batch(timestamp)],
    })),
  })),
});

const clientOf = (consumer: object) => clientOver(consumer as Consumer, OPTIONS);

test('SCL-2: a batch that is too large when it is decompressed does not stop other partitions', async () => {
  const requests: number[][] = [];
  let hasSession = true;
  const client = clientOf({
    async fetch(options: Fetch) {
      const partitions = options.topics.flatMap((topic) => topic.partitions.map((each) => each.partition));
      requests.push(partitions);
      if (partitions.includes(1)) throw new AggregateError([new DecompressionLimitError(1)]);
      if (hasSession) {
        hasSession = false;
        throw new Error('INVALID_FETCH_SESSION_EPOCH');
      }
      return answerFor(options);
    },
  });
  const fetched = await client.fetch(1, [0, 1, 2].map(position));
  expect(fetched).toMatchObject([
    { partition: 0, isTooLarge: false, records: [{ offset: 7n }] },
    { partition: 1, isTooLarge: true, records: [], nextOffset: 7n },
    { partition: 2, isTooLarge: false, records: [{ offset: 7n }] },
  ]);
  expect(requests).toEqual([[0, 1, 2], [0], [0], [1], [2]]);
});

test.each([
  ['in nanoseconds', 1_800_000_000_000_000_000n, '9999-12-31T23:59:59.999Z'],
  ['that is missing', -1n, '1970-01-01T00:00:00.000Z'],
  ['in milliseconds', 1_800_000_000_123n, '2027-01-15T08:00:00.123Z'],
])('SCL-2: a timestamp %s can be stored', async (_what, timestamp, shown) => {
  const client = clientOf({ fetch: async (options: Fetch) => answerFor(options, timestamp) });
  const [fetched] = await client.fetch(1, [position(0)]);
  expect(new Date(fetched!.records[0]!.timestampMs).toISOString()).toBe(shown);
});

test('SCL-2: a topic that Kafka cannot describe does not hide the others', async () => {
  const forbidden = Object.assign(new Error('TOPIC_AUTHORIZATION_FAILED'), { response: {} });
  const failures: Record<string, Error> = {
    secret: new AggregateError([forbidden]),
    none: new Error('Unknown topic none.'),
    down: new Error('Connection refused'),
  };
  const client = clientOf({
    topics: { track() {}, untrack() {} },
    async metadata({ topics: [name] }: { topics: [string] }) {
      if (failures[name] !== undefined) throw failures[name];
      return { id: 'c', topics: new Map([[name, { id: 't', partitionsCount: 2 }]]) };
    },
  });
  expect(await client.describe(['secret', 'none', 'orders'])).toEqual({
    cluster: 'c',
    topics: [{ name: 'orders', id: 't', partitions: 2 }],
    missing: ['none'],
    failed: [{ name: 'secret', error: failures.secret }],
  });
  // Without an answer of a broker, nothing is known.
  await expect(client.describe(['orders', 'down'])).rejects.toThrow('refused');
});
