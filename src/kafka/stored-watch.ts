/**
 * Waits until the events that are in the accept topic now are in PostgreSQL. So the API can tell an event that is not stored yet
 * from one that does not exist.
 */
import type { Clock } from '../domain/clock.ts';
import type { KafkaStore } from '../ports/kafka-store.ts';
import type { KafkaClient } from './client.ts';

export interface StoredWatchOptions {
  /** Loads the client: called once, by the first check. */
  readonly connect: () => Promise<KafkaClient>;
  readonly store: Pick<KafkaStore, 'readPositions'>;
  readonly topic: string;
  /** False: the topic is read only if it was used before. */
  readonly isInUse: boolean;
  readonly clock: Clock;
  readonly maxWaitMs: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

const POLL_MS = 20;
/** Calls within this time share one check. */
const GATHER_MS = 5;
/** Checks that run at the same time. Further calls share the next one, so that requests for unknown ids cannot use up the connections. */
const MAX_CHECKS = 4;

export class StoredWatch {
  readonly #options: StoredWatchOptions;
  #client: Promise<KafkaClient> | null = null;
  #nextCheck: Promise<boolean> | null = null;
  #running = 0;

  constructor(options: StoredWatchOptions) {
    this.#options = options;
  }

  /** Resolves with true when all records that were in the topic at the call are stored. False: they were not stored in time, or Kafka does not answer. */
  waitUntilStored(): Promise<boolean> {
    this.#nextCheck ??= this.#startCheck();
    return this.#nextCheck;
  }

  async #startCheck(): Promise<boolean> {
    do await this.#pause(GATHER_MS);
    while (this.#running >= MAX_CHECKS);
    this.#nextCheck = null;
    this.#running += 1;
    try {
      return await this.#wait();
    } finally {
      this.#running -= 1;
    }
  }

  async stop(): Promise<void> {
    const client = await this.#client?.catch(() => null);
    await client?.close().catch(() => {});
  }

  async #wait(): Promise<boolean> {
    const { store, topic, isInUse, clock, maxWaitMs, onProblem, connect } = this.#options;
    const giveUpAt = clock.monotonic() + maxWaitMs;
    try {
      if (!isInUse && (await store.readPositions(topic)).size === 0) return true;
      this.#client ??= connect();
      const client = await this.#client;
      const { missing } = await client.describe([topic]);
      if (missing.length > 0) return true;
      const ends = await client.listOffsets(topic, 'latest');
      while (!hasReached(await store.readPositions(topic), ends)) {
        if (clock.monotonic() > giveUpAt) return false;
        await this.#pause(POLL_MS);
      }
      return true;
    } catch (error) {
      onProblem('compare the accept topic with the stored positions', error);
      return false;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#options.clock.after(ms, resolve));
  }
}

const hasReached = (positions: ReadonlyMap<number, bigint>, ends: readonly bigint[]): boolean =>
  ends.every((end, partition) => (positions.get(partition) ?? 0n) >= end);
