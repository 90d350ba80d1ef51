/** Finds the topics and makes their partitions known to the store. */
import type { Clock } from '../domain/clock.ts';
import type { KafkaStore, NewKafkaPartition } from '../ports/kafka-store.ts';
import type { FailedTopic, KafkaClient, TopicDescription } from './client.ts';

export interface TopicsOptions {
  readonly client: KafkaClient;
  readonly store: KafkaStore;
  readonly names: readonly string[];
  /** The topic that accepted events are written to. If it is not in use, it is read only if it was used before. */
  readonly accept?: { readonly name: string; readonly isInUse: boolean } | undefined;
  /**
   * Where to start reading a topic that already exists when Posthorn first looks for it. Other topics are read from
   * their beginning.
   */
  readonly start: 'earliest' | 'latest';
  readonly clock: Clock;
}

export interface KnownTopics {
  readonly cluster: string;
  readonly ids: readonly string[];
}

/** New partitions and topics that were created again are found within this time. */
const REFRESH_MS = 15_000;

export class Topics {
  readonly #options: TopicsOptions;
  /** `topic id/partition` of those that the store knows. */
  readonly #added = new Set<string>();
  /** The topics that existed when Kafka last answered. Null: it has not answered yet. */
  known: KnownTopics | null = null;
  /** The last known id of each topic, by name. */
  readonly #ids = new Map<string, string>();
  readonly #awaited = new Set<string>();
  #refreshAt = 0;
  missing: readonly string[] = [];
  /** Topics that Kafka could not describe in the last `refresh`. Those that were known before stay known. */
  failed: readonly FailedTopic[] = [];

  constructor(options: TopicsOptions) {
    this.#options = options;
  }

  /** Makes the next `refresh` ask Kafka. */
  refreshSoon(): void {
    this.#refreshAt = 0;
  }

  /**
   * Asks Kafka which topics exist, unless it has answered a few seconds ago. A topic that fails does not stop the others.
   * Throws if all fail.
   */
  async refresh(): Promise<void> {
    const { client, clock } = this.#options;
    if (clock.monotonic() < this.#refreshAt) return;
    const names = await this.#listNames();
    if (names.length === 0) {
      this.#refreshAt = clock.monotonic() + REFRESH_MS;
      return;
    }
    const { cluster, topics, missing: absent, ...described } = await client.describe(names);
    // Without events in it, an operator may delete the accept topic after it was used.
    const missing = absent.filter((name) => this.#options.names.includes(name) || this.#mustExist(name));
    await this.#recordAwaitedTopics(missing);
    const failed = [...described.failed];
    for (const topic of topics) {
      try {
        await this.#add(cluster, topic);
        this.#ids.set(topic.name, topic.id);
      } catch (error) {
        failed.push({ name: topic.name, error });
      }
    }
    for (const name of absent) this.#ids.delete(name);
    this.missing = missing;
    this.failed = failed;
    if (failed.length > 0 && failed.length === names.length) throw failed[0]!.error;
    // Without an answer about any topic, the cluster is unknown.
    this.known = {
      cluster: cluster === '' ? (this.known?.cluster ?? '') : cluster,
      ids: [...this.#ids.values()],
    };
    // A topic that does not exist may be created at any time.
    this.#refreshAt = missing.length + failed.length > 0 ? 0 : clock.monotonic() + REFRESH_MS;
  }

  async #listNames(): Promise<readonly string[]> {
    const { names, accept, store } = this.#options;
    if (accept === undefined) return names;
    const isRead = accept.isInUse || (await store.readPositions(accept.name)).size > 0;
    return isRead ? [...names, accept.name] : names;
  }

  #mustExist(name: string): boolean {
    const { accept } = this.#options;
    return accept?.name === name && accept.isInUse;
  }

  /** Records topics that do not exist, so that none of their records is skipped when they are created. */
  async #recordAwaitedTopics(missing: readonly string[]): Promise<void> {
    const awaited = missing.filter((name) => !this.#awaited.has(name));
    if (awaited.length === 0) return;
    await this.#options.store.recordAwaitedTopics(awaited);
    for (const name of awaited) this.#awaited.add(name);
  }

  async #add(cluster: string, { name, id, partitions }: TopicDescription): Promise<void> {
    const { client, store, accept } = this.#options;
    // A record of the accept topic must never be skipped.
    const start = name === accept?.name ? 'earliest' : this.#options.start;
    const numbers = Array.from({ length: partitions }, (_, partition) => partition);
    const added = numbers.filter((partition) => !this.#added.has(`${id}/${partition}`));
    if (added.length === 0) return;
    // Partitions that were added, and topics that were created after Posthorn first looked for them, have only new records.
    const isKnown = start === 'latest' && (await store.listKnownTopics(cluster)).has(name);
    const offsets = await client.listOffsets(name, isKnown ? 'earliest' : start);
    await store.addPartitions(
      cluster,
      added.map(
        (partition): NewKafkaPartition => ({
          topic: name,
          topicId: id,
          partition,
          position: String(offsets[partition] ?? 0n),
        }),
      ),
    );
    for (const partition of added) this.#added.add(`${id}/${partition}`);
  }
}
