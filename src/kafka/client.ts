/** What the source needs from a Kafka client. `platformatic-client.ts` implements it. */
import type { KafkaRecord } from './record.ts';

export interface TopicDescription {
  readonly name: string;
  readonly id: string;
  readonly partitions: number;
}

export interface FailedTopic {
  readonly name: string;
  readonly error: unknown;
}

export interface ClusterDescription {
  /** Identifies the cluster: offsets of another cluster mean nothing here. */
  readonly cluster: string;
  readonly topics: readonly TopicDescription[];
  /** Topics that do not exist. */
  readonly missing: readonly string[];
  /** Topics that Kafka could not describe: they are forbidden, or a partition has no leader. */
  readonly failed: readonly FailedTopic[];
}

export interface FetchPosition {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly offset: bigint;
}

export interface FetchedPartition {
  readonly topicId: string;
  readonly partition: number;
  /** Null: no error. Otherwise Kafka's error code; `records` is then empty. */
  readonly errorCode: number | null;
  /** True: the batch at the position is too large when it is decompressed. It was not read, and `records` is empty. */
  readonly isTooLarge: boolean;
  /** The oldest offset that Kafka still has. */
  readonly logStart: bigint;
  /** The offset of the next record that will be readable. */
  readonly logEnd: bigint;
  readonly records: readonly KafkaRecord[];
  /** Where to read next. Transaction markers and aborted records have offsets too. */
  readonly nextOffset: bigint;
}

export interface KafkaClient {
  describe(topics: readonly string[]): Promise<ClusterDescription>;
  /** Returns the first or the next offset of each partition, in order. */
  listOffsets(topic: string, which: 'earliest' | 'latest'): Promise<readonly bigint[]>;
  /** Returns the broker that leads a partition, or null if there is none now. */
  leaderOf(topic: string, partition: number): number | null;
  /** Only one fetch per broker may run at a time. */
  fetch(broker: number, positions: readonly FetchPosition[]): Promise<readonly FetchedPartition[]>;
  close(): Promise<void>;
}

export interface KafkaClientOptions {
  readonly brokers: readonly string[];
  readonly tls: KafkaTls | null;
  readonly sasl: {
    readonly mechanism: 'PLAIN' | 'SCRAM-SHA-256' | 'SCRAM-SHA-512';
    readonly username: string;
    readonly password: string;
  } | null;
  /** How long the broker waits for records. */
  readonly maxWaitMs: number;
  readonly maxBytes: number;
}

export interface KafkaTls {
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | undefined;
  readonly key?: Buffer | undefined;
}

/** The position is before the oldest record, or after the newest. */
export const OFFSET_OUT_OF_RANGE = 1;
