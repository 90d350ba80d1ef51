/**
 * The accept topic on virtual time, and the clients through which processes write and read it. A broker may be away, lose a request
 * or an answer, or write records that it has already: the clients see what the real ones see.
 */
import type { AcceptClient } from '../../src/kafka/accept-log.ts';
import type { NewLogRecord } from '../../src/kafka/accept-record.ts';
import type { FetchedPartition, FetchPosition, KafkaClient } from '../../src/kafka/client.ts';
import type { KafkaRecord } from '../../src/kafka/record.ts';
import type { Process, VirtualTime } from './virtual-time.ts';
import type { Weather } from './weather.ts';

export const ACCEPT_TOPIC = 'accept';
const TOPIC_ID = 'accept-topic';
const PARTITIONS = 3;
const BROKER = 1;
const MAX_WAIT_MS = 200;
/** So few that a batch is read in several parts. */
const MAX_RECORDS = 7;
const REQUEST_TIMEOUT_MS = 1_000;

/** What happens to a request that writes. `late`: the client gets an error, and the broker writes the records afterwards. */
export type AppendFault = 'none' | 'lost_request' | 'lost_answer' | 'late' | 'twice';

type Time = Pick<VirtualTime, 'now' | 'after'>;

export class SimulatedKafka {
  readonly #time: Time;
  readonly #weather: () => Weather;
  readonly #partitions: KafkaRecord[][] = Array.from({ length: PARTITIONS }, () => []);
  /** Reads that wait for a record. */
  #waiting: (() => void)[] = [];

  constructor(time: Time, weather: () => Weather) {
    this.#time = time;
    this.#weather = weather;
  }

  /** The end of each partition. */
  get ends(): readonly number[] {
    return this.#partitions.map(({ length }) => length);
  }

  newWriter(owner: Process): AcceptClient {
    return {
      openTopic: () => this.#ask(owner, () => PARTITIONS),
      append: (partition, records) => this.#append(owner, partition, records),
      close: async () => {},
    };
  }

  newReader(owner: Process): KafkaClient {
    const topic = { name: ACCEPT_TOPIC, id: TOPIC_ID, partitions: PARTITIONS };
    return {
      describe: () =>
        this.#ask(owner, () => ({ cluster: 'cluster', topics: [topic], missing: [], failed: [] })),
      listOffsets: (_, which) =>
        this.#ask(owner, () => this.ends.map((end) => BigInt(which === 'latest' ? end : 0))),
      leaderOf: () => BROKER,
      fetch: (_, positions) => this.#fetch(owner, positions),
      close: async () => {},
    };
  }

  async #append(owner: Process, partition: number, records: readonly NewLogRecord[]): Promise<void> {
    const { brokerIsAway, appendFault, brokerMs } = this.#weather();
    const fault = appendFault();
    const latencyMs = brokerMs();
    if (brokerIsAway() || fault === 'lost_request') {
      await this.#wait(owner, REQUEST_TIMEOUT_MS);
      throw new Error('The broker did not answer.');
    }
    if (fault === 'late') {
      this.#time.after(REQUEST_TIMEOUT_MS + latencyMs * 20, null, () => this.#write(partition, records));
      await this.#wait(owner, REQUEST_TIMEOUT_MS);
      throw new Error('The broker did not answer in time.');
    }
    // The broker writes the records also if the process dies meanwhile.
    await this.#wait(null, latencyMs / 2);
    this.#write(partition, records);
    if (fault === 'twice') this.#write(partition, records);
    await this.#wait(owner, fault === 'lost_answer' ? REQUEST_TIMEOUT_MS : latencyMs / 2);
    if (fault === 'lost_answer') throw new Error('The answer of the broker was lost.');
  }

  #write(partition: number, records: readonly NewLogRecord[]): void {
    const log = this.#partitions[partition]!;
    for (const { key, value, headers } of records)
      log.push({
        topic: ACCEPT_TOPIC,
        partition,
        offset: BigInt(log.length),
        timestampMs: Math.floor(this.#time.now()),
        key,
        value,
        headers: [...headers].map(([name, bytes]) => [name.toString(), bytes] as const),
      });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async #fetch(owner: Process, positions: readonly FetchPosition[]): Promise<FetchedPartition[]> {
    const hasRecords = (): boolean =>
      positions.some(({ partition, offset }) => Number(offset) < this.#partitions[partition]!.length);
    if (!hasRecords())
      await new Promise<void>((resolve) => {
        this.#waiting.push(() => this.#time.after(0, owner, resolve));
        this.#time.after(MAX_WAIT_MS, owner, resolve);
      });
    return this.#ask(owner, () => positions.map((position) => this.#read(position)));
  }

  #read({ topicId, partition, offset }: FetchPosition): FetchedPartition {
    const log = this.#partitions[partition]!;
    const records = log.slice(Number(offset), Number(offset) + MAX_RECORDS);
    return {
      topicId,
      partition,
      errorCode: null,
      isTooLarge: false,
      logStart: 0n,
      logEnd: BigInt(log.length),
      records,
      nextOffset: offset + BigInt(records.length),
    };
  }

  async #ask<T>(owner: Process, question: () => T): Promise<T> {
    const { brokerIsAway, brokerMs } = this.#weather();
    const isAway = brokerIsAway();
    await this.#wait(owner, isAway ? REQUEST_TIMEOUT_MS : brokerMs());
    if (isAway) throw new Error('The broker did not answer.');
    return question();
  }

  #wait(owner: Process | null, ms: number): Promise<void> {
    return new Promise((resolve) => void this.#time.after(ms, owner, () => resolve()));
  }
}
