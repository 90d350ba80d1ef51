/**
 * The accept topic, as the accept stage sees it. The process starts without Kafka: until the topic is there, events are refused.
 *
 * The producer is not idempotent. A record that is written twice has the same event id, and PostgreSQL stores it once. So nothing
 * depends on the sequence numbers of a producer, which a client that gives up on a batch must not reuse.
 */
import type { Clock } from '../domain/clock.ts';
import type { Service } from '../domain/lifecycle.ts';
import { Progress } from '../domain/progress.ts';
import type { EventLog, LoggedEvent } from '../ports/event-log.ts';
import { encodeEvent, type NewLogRecord } from './accept-record.ts';

/** What the log needs of a Kafka client. `accept-client.ts` implements it. */
export interface AcceptClient {
  /** Creates the topic if it does not exist. Returns the number of its partitions. Throws if it is not safe to use. */
  openTopic(): Promise<number>;
  /** Resolves when `min.insync.replicas` brokers have the records. */
  append(partition: number, records: readonly NewLogRecord[]): Promise<void>;
  close(): Promise<void>;
}

export interface KafkaEventLogOptions {
  /** Loads the client: called once, when the log starts. */
  readonly connect: () => Promise<AcceptClient>;
  readonly deployment: string;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

const REOPEN_MS = 1_000;

export class KafkaEventLog implements EventLog, Service {
  readonly #options: KafkaEventLogOptions;
  readonly #progress: Progress;
  #client: AcceptClient | null = null;
  #opening: Promise<void> = Promise.resolve();
  #cancelReopen: (() => void) | null = null;
  #isStopping = false;
  partitions: number | null = null;
  /** Events that Kafka has confirmed, and tries that failed. */
  readonly counts = { confirmed: 0, failures: 0 };

  constructor(options: KafkaEventLogOptions) {
    this.#options = options;
    this.#progress = new Progress(options.clock, { needsSubjects: 0 });
  }

  /** How long Kafka has confirmed nothing, although events were written. 0: the last one was confirmed. */
  get stalledForMs(): number {
    return this.#progress.stalledForMs;
  }

  /** Waits for the first try only. */
  async start(): Promise<void> {
    this.#opening = this.#open();
    await this.#opening;
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#cancelReopen?.();
    await this.#opening;
    await this.#client?.close().catch(() => {});
  }

  async append(partition: number, events: readonly LoggedEvent[]): Promise<void> {
    const { deployment } = this.#options;
    const records = events.map((event) => encodeEvent(event, deployment));
    try {
      await this.#progress.watch([], () => this.#client!.append(partition, records));
      this.counts.confirmed += events.length;
    } catch (error) {
      this.counts.failures += 1;
      this.#options.onProblem('write to the accept topic', error);
      throw error;
    }
  }

  async #open(): Promise<void> {
    const { connect, clock, onProblem } = this.#options;
    try {
      this.#client ??= await connect();
      this.partitions = await this.#client.openTopic();
    } catch (error) {
      onProblem('open the accept topic', error);
      if (this.#isStopping) return;
      this.#cancelReopen = clock.after(REOPEN_MS, () => {
        this.#opening = this.#open();
      });
    }
  }
}
