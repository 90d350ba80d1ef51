/** OBS-2: the alerts about Kafka, on a real server that reports partitions which need help. */
import { expectAlerts, judged, named, scrape, untilScrape } from '../../support/alerts.ts';
import { insertRejectedRecord } from '../../support/kafka/rejected-record.ts';
import { usePosthorn } from '../../support/posthorn.ts';

const posthorn = usePosthorn({
  env: {
    POSTHORN_MEASURE_MS: '50',
    // Nobody listens there.
    POSTHORN_KAFKA_BROKERS: '127.0.0.1:1',
    POSTHORN_KAFKA_SOURCE_TOPICS: 'orders',
  },
});

const ALERTS = [
  'PosthornKafkaLag',
  'PosthornKafkaUnread',
  'PosthornKafkaPaused',
  'PosthornKafkaRejected',
  'PosthornKafkaLost',
];

judged(
  'OBS-2: partitions that are behind, unread or paused, and rejected or lost records trigger their alerts',
  async () => {
    await posthorn.database.query(
      `insert into posthorn.kafka_partitions (cluster, topic, topic_id, partition, position, log_end, seen_at)
     values ('test', 'orders', 'orders', 0, 0, 0, now())`,
    );
    const well = await untilScrape(posthorn, 'the partition is reported', (now) =>
      now.text.includes('posthorn_kafka_lag_records{'),
    );
    await expectAlerts([well, well], { silent: ALERTS.map(named) });
    await insertRejectedRecord(posthorn.database, { tenant: 'acme' });
    await posthorn.database.query(
      `update posthorn.kafka_partitions
        set log_end = 10001, paused_reason = 'overflow_full', lost_records = 5, seen_at = now() - interval '5 minutes'`,
    );
    const ill = await untilScrape(
      posthorn,
      'all of it is reported',
      (now) =>
        now.value('posthorn_kafka_lag_records') > 10_000 &&
        now.value('posthorn_kafka_lost_records_total') === 5,
    );
    await expectAlerts([await scrape(posthorn), ill], { firing: ALERTS.slice(0, 4).map(named) });
    await expectAlerts([well, ill], { firing: [named('PosthornKafkaLost')] });
  },
);
