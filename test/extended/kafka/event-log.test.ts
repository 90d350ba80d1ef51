/** SCL-2: a real broker keeps the same rules as the simulated one. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../../src/domain/clock.ts';
import {
  type KafkaClient,
  KafkaEventLog,
  loadAcceptClient,
  loadKafkaClient,
} from '../../../src/kafka/index.ts';
import { DEPLOYMENT, describeEventLog } from '../../conformance/event-log.ts';
import { missingKafka, TestBroker } from '../../support/kafka/broker.ts';
import { needs } from '../../support/needs.ts';

describeEventLog('Kafka', needs(missingKafka()), async () => {
  const broker = await TestBroker.start();
  const connection = { brokers: [broker.address], tls: null, sasl: null };
  const topic = {
    name: `accept-${randomUUID()}`,
    partitions: 3,
    replicas: 1,
    minInsync: 1,
    retentionMs: 3_600_000,
    maxRecordBytes: 300_000,
  };
  const logs: KafkaEventLog[] = [];
  const readers: KafkaClient[] = [];
  return {
    topic: topic.name,
    async openLog() {
      const connect = () => loadAcceptClient(connection, topic);
      const onProblem = (): void => {};
      const log = new KafkaEventLog({ connect, deployment: DEPLOYMENT, clock: systemClock, onProblem });
      logs.push(log);
      await log.start();
      return log;
    },
    async openReader() {
      const reader = await loadKafkaClient({ ...connection, maxWaitMs: 100, maxBytes: 1_000_000 });
      readers.push(reader);
      return reader;
    },
    async close() {
      await Promise.all([...logs.map((log) => log.stop()), ...readers.map((reader) => reader.close())]);
      await broker.remove();
    },
  };
});
