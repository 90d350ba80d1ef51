/** The Kafka brokers of a run with `POSTHORN_BACKBONE=kafka`. */
import { setTimeout as delay } from 'node:timers/promises';
import { Admin, type ClusterPartitionMetadata } from '@platformatic/kafka';
import { TestBroker } from '../support/kafka/broker.ts';
import { areInSync, moveLeaders } from '../support/kafka/leaders.ts';
import type { Postgres } from './system.ts';
import { until } from './until.ts';

const TOPIC = 'posthorn.accept';
const PARTITIONS = 12;
/** A confirmed event must survive the loss of a broker. */
const MOST_COPIES = 3;
/** Stands for the end of a partition. */
const LATEST = -1n;
const REQUEST_MS = 5_000;
const ASK_AGAIN_MS = 200;
const RECOVERY_MS = 90_000;

export class Brokers {
  readonly all: readonly TestBroker[];
  #admin: Admin;

  private constructor(all: readonly TestBroker[]) {
    this.all = all;
    this.#admin = this.#connect();
  }

  static async start(count: number): Promise<Brokers> {
    return new Brokers(await TestBroker.startCluster(count));
  }

  /** The settings of a Posthorn that accepts events in these brokers. */
  get env(): Readonly<Record<string, string>> {
    return {
      POSTHORN_BACKBONE: 'kafka',
      POSTHORN_KAFKA_BROKERS: this.all.map(({ address }) => address).join(),
      POSTHORN_KAFKA_ACCEPT_TOPIC: TOPIC,
      POSTHORN_KAFKA_ACCEPT_PARTITIONS: String(PARTITIONS),
      POSTHORN_KAFKA_ACCEPT_REPLICAS: String(this.#copies),
      POSTHORN_KAFKA_ACCEPT_MIN_INSYNC: String(Math.ceil(this.#copies / 2)),
      POSTHORN_KAFKA_RENEW_MS: '200ms',
      POSTHORN_KAFKA_LEASE_MS: '1500ms',
    };
  }

  get #copies(): number {
    return Math.min(MOST_COPIES, this.all.length);
  }

  /** True if the topic has no record that is not stored. */
  async isDrained(postgres: Postgres): Promise<boolean> {
    const ends = await this.#readEnds();
    const rows = await postgres.query<{ partition: number; position: string }>(
      'select partition, position::text from posthorn.kafka_partitions where topic = $1',
      [TOPIC],
    );
    const positions = new Map(rows.map(({ partition, position }) => [partition, BigInt(position)]));
    const [waiting] = await postgres.query<{ n: number }>(
      `select count(*)::int as n from posthorn.kafka_records where state = 'waiting'`,
    );
    const isStored = [...ends].every(([partition, end]) => (positions.get(partition) ?? 0n) >= end);
    return isStored && waiting!.n === 0;
  }

  async #readEnds(): Promise<ReadonlyMap<number, bigint>> {
    const wanted = Array.from({ length: PARTITIONS }, (_, partitionIndex) => ({
      partitionIndex,
      timestamp: LATEST,
    }));
    const [topic] = await this.#ask((admin) =>
      admin.listOffsets({ topics: [{ name: TOPIC, partitions: wanted }] }),
    );
    return new Map(topic!.partitions.map(({ partitionIndex, offset }) => [partitionIndex, offset]));
  }

  /** Waits until each partition has a leader, and all its copies. */
  async untilInSync(): Promise<void> {
    const isInSync = async (): Promise<boolean> => areInSync(await this.#readPartitions());
    await until('all partitions of the accept topic have their copies', isInSync, RECOVERY_MS);
  }

  movePartitions(): Promise<void> {
    return moveLeaders(
      this.all[0]!.address,
      TOPIC,
      () => this.#readPartitions(),
      () => this.untilInSync(),
    );
  }

  async #readPartitions(): Promise<readonly ClusterPartitionMetadata[]> {
    const { topics } = await this.#ask((admin) => admin.metadata({ topics: [TOPIC], forceUpdate: true }));
    return topics.get(TOPIC)!.partitions;
  }

  async stop(): Promise<void> {
    await this.#admin.close().catch(() => {});
    await Promise.all(this.all.map((broker) => broker.remove()));
  }

  #connect(): Admin {
    return new Admin({
      clientId: 'chaos',
      bootstrapBrokers: this.all.map(({ address }) => address),
      retries: 0,
      requestTimeout: REQUEST_MS,
    });
  }

  /** Asks again, with new connections, while brokers are down. */
  async #ask<T>(question: (admin: Admin) => Promise<T>): Promise<T> {
    const giveUpAt = Date.now() + RECOVERY_MS;
    for (;;) {
      try {
        return await question(this.#admin);
      } catch (error) {
        if (Date.now() > giveUpAt) throw error;
      }
      await this.#admin.close().catch(() => {});
      this.#admin = this.#connect();
      await delay(ASK_AGAIN_MS);
    }
  }
}
