import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { KafkaStore, NewKafkaPartition } from '../ports/kafka-store.ts';
import type { ClusterDescription, KafkaClient } from './client.ts';
import { Topics } from './topics.ts';

const idOf = (name: string): string => `id of ${name}`;

/** Topics on a cluster that fails for those in `forbidden` (no description) and `leaderless` (no offsets). */
function newTopics(names: readonly string[]) {
  const forbidden = new Set<string>();
  const leaderless = new Set<string>();
  const added: string[] = [];
  const client: Partial<KafkaClient> = {
    async describe(): Promise<ClusterDescription> {
      const topics = names.filter((name) => !forbidden.has(name));
      return {
        cluster: topics.length === 0 ? '' : 'c',
        topics: topics.map((name) => ({ name, id: idOf(name), partitions: 1 })),
        missing: [],
        failed: [...forbidden].map((name) => ({ name, error: new Error(`${name} is forbidden`) })),
      };
    },
    async listOffsets(topic: string) {
      if (leaderless.has(topic)) throw new Error(`${topic} has no leader`);
      return [0n];
    },
  };
  const store: Partial<KafkaStore> = {
    async addPartitions(_cluster: string, partitions: readonly NewKafkaPartition[]) {
      added.push(...partitions.map(({ topic }) => topic));
    },
  };
  const topics = new Topics({
    client: client as KafkaClient,
    store: store as KafkaStore,
    names,
    start: 'earliest',
    clock: systemClock,
  });
  return { topics, forbidden, leaderless, added };
}

test('SCL-2: a topic that may not be read, or has no leader, does not stop the others', async () => {
  const { topics, forbidden, leaderless, added } = newTopics(['a', 'b', 'c']);
  forbidden.add('a');
  leaderless.add('b');
  await topics.refresh();
  expect(added).toEqual(['c']);
  expect(topics.known).toEqual({ cluster: 'c', ids: [idOf('c')] });
  expect(topics.failed.map(({ name }) => name)).toEqual(['a', 'b']);
  leaderless.clear();
  // The next refresh is not delayed.
  await topics.refresh();
  expect(topics.known?.ids).toEqual([idOf('c'), idOf('b')]);
});

test('SCL-2: a topic that was known stays known while Kafka cannot describe it', async () => {
  const { topics, forbidden } = newTopics(['a', 'b']);
  await topics.refresh();
  topics.refreshSoon();
  forbidden.add('a');
  await topics.refresh();
  expect(topics.known).toEqual({ cluster: 'c', ids: [idOf('a'), idOf('b')] });
  forbidden.add('b');
  await expect(topics.refresh()).rejects.toThrow('forbidden');
  expect(topics.known?.ids).toEqual([idOf('a'), idOf('b')]);
});
