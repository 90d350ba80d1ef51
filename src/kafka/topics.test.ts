import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { KafkaStore } from '../ports/kafka-store.ts';
import type { KafkaClient, TopicDescription } from './client.ts';
import { Topics, type TopicsOptions } from './topics.ts';

/** A cluster whose topics have records from 0 to 9, and a store that outlives processes. */
function newCluster() {
  let topics: TopicDescription[] = [];
  const names = new Set<string>();
  const positions: string[] = [];
  const client: Partial<KafkaClient> = {
    async describe(wanted) {
      const missing = wanted.filter((name) => !topics.some((topic) => topic.name === name));
      return { cluster: 'c', topics, missing, failed: [] };
    },
    listOffsets: async (_name, which) => [0, 1].map(() => (which === 'latest' ? 10n : 0n)),
  };
  const store: Partial<KafkaStore> = {
    listKnownTopics: async () => new Set(names),
    readPositions: async (topic) => new Map(names.has(topic) ? [[0, 0n]] : []),
    async recordAwaitedTopics(awaited) {
      for (const name of awaited) names.add(name);
    },
    async addPartitions(_cluster, added) {
      for (const { topic, partition, position } of added) {
        names.add(topic);
        positions.push(`${topic}/${partition} from ${position}`);
      }
    },
  };
  const startProcess = (changes: Partial<TopicsOptions> = {}) =>
    new Topics({
      client: client as KafkaClient,
      store: store as KafkaStore,
      names: ['orders'],
      start: 'latest',
      clock: systemClock,
      ...changes,
    });
  return {
    positions,
    names,
    startProcess,
    setTopic: (id: string, partitions = 1) => {
      topics = [{ name: 'orders', id, partitions }];
    },
  };
}

test('SCL-2: POSTHORN_KAFKA_START=latest skips the records of a topic that exists', async () => {
  const { positions, startProcess, setTopic } = newCluster();
  setTopic('a');
  const topics = startProcess();
  await topics.refresh();
  setTopic('a', 2);
  topics.refreshSoon();
  await topics.refresh();
  expect(positions).toEqual(['orders/0 from 10', 'orders/1 from 0']);
});

test('SCL-2: POSTHORN_KAFKA_START=latest skips nothing of a topic that was deleted and created again', async () => {
  const { positions, startProcess, setTopic } = newCluster();
  setTopic('a');
  await startProcess().refresh();
  setTopic('b');
  await startProcess().refresh();
  expect(positions).toEqual(['orders/0 from 10', 'orders/0 from 0']);
});

test('SCL-2: POSTHORN_KAFKA_START=latest skips nothing of a topic that is created later, not even after a restart', async () => {
  const { positions, startProcess, setTopic } = newCluster();
  await startProcess().refresh();
  setTopic('a');
  await startProcess().refresh();
  expect(positions).toEqual(['orders/0 from 0']);
});

test('SCL-2: POSTHORN_KAFKA_START=latest skips nothing of the accept topic', async () => {
  const { positions, startProcess, setTopic } = newCluster();
  setTopic('a');
  await startProcess({ names: [], accept: { name: 'orders', isInUse: true } }).refresh();
  expect(positions).toEqual(['orders/0 from 0']);
});

test('SCL-2: the accept topic is read if it is in use, or was used before', async () => {
  const { names, startProcess } = newCluster();
  const unused = startProcess({ names: [], accept: { name: 'accept', isInUse: false } });
  await unused.refresh();
  expect(unused.known).toBeNull();
  const used = startProcess({ names: [], accept: { name: 'accept', isInUse: true } });
  await used.refresh();
  expect(used.missing).toEqual(['accept']);
  names.add('accept');
  // It was deleted after it was used: that is no problem.
  const again = startProcess({ names: [], accept: { name: 'accept', isInUse: false } });
  await again.refresh();
  expect(again).toMatchObject({ known: { cluster: 'c', ids: [] }, missing: [] });
});
