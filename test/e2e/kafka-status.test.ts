/** OBS-2: what Posthorn reports about Kafka partitions that nobody reads. No broker is needed. */
import { expect, test } from 'vitest';
import { scrape, untilScrape } from '../support/alerts.ts';
import { insertRejectedRecord } from '../support/kafka/rejected-record.ts';
import { usePosthorn } from '../support/posthorn.ts';

const posthorn = usePosthorn({
  env: {
    POSTHORN_MEASURE_MS: '50',
    // Nobody listens there.
    POSTHORN_KAFKA_BROKERS: '127.0.0.1:1',
    POSTHORN_KAFKA_SOURCE_TOPICS: 'orders',
  },
});

test('OBS-2: a partition that was never read counts as unseen from the moment Posthorn learned of it', async () => {
  await posthorn.database.query(
    `insert into posthorn.kafka_partitions (cluster, topic, topic_id, partition, position, created_at)
     values ('test', 'orders', 'new', 0, 0, now() - interval '5 minutes')`,
  );
  const { value } = await untilScrape(posthorn, 'the partition is reported', (now) =>
    now.text.includes('posthorn_kafka_unseen_seconds{'),
  );
  expect(value('posthorn_kafka_unseen_seconds')).toBeGreaterThan(299);
});

test('OBS-2: records of a deleted topic that are set aside are shown and counted until they are stored', async () => {
  await posthorn.database.query('truncate posthorn.kafka_records, posthorn.kafka_partitions');
  await insertRejectedRecord(posthorn.database, { tenant: 'acme' });
  await insertRejectedRecord(posthorn.database, { tenant: 'acme', topic: 'removed' });
  await posthorn.database.query("update posthorn.kafka_records set state = 'waiting'");
  await posthorn.database.query(
    `insert into posthorn.kafka_partitions (cluster, topic, topic_id, partition, position, seen_at)
     values ('test', 'orders', 'created again', 0, 0, now())`,
  );
  const { body } = await posthorn.api('GET', '/v1/sources');
  expect(body).toMatchObject({
    kafka: {
      partitions: [
        { topic: 'orders', waiting: 1, paused_reason: 'topic_removed' },
        { topic: 'orders', waiting: 0, paused_reason: null },
        { topic: 'removed', waiting: 1, paused_reason: 'topic_removed' },
      ],
    },
  });
  await untilScrape(posthorn, 'the waiting records are reported', (now) =>
    now.text.includes('posthorn_kafka_waiting_records{topic="removed",partition="0"} 1'),
  );
  const { text } = await scrape(posthorn);
  const series = text.split('\n').filter((line) => line.startsWith('posthorn_kafka_'));
  const names = series.map((line) => line.slice(0, line.lastIndexOf(' ')));
  expect(new Set(names).size).toBe(names.length);
  expect(series).toContain('posthorn_kafka_waiting_records{topic="orders",partition="0"} 1');
  expect(series.filter((line) => line.startsWith('posthorn_kafka_paused'))).toEqual([
    'posthorn_kafka_paused{topic="orders",partition="0"} 0',
  ]);
});
