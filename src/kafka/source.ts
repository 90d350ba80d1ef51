/**
 * Reads the Kafka partitions that this process owns.
 *
 * The process renews its lease every two seconds and learns which partitions it owns. For each broker it has one fetch at a
 * time, for all idle partitions that the broker leads. The records of a partition are stored before the partition is fetched
 * again, so a slow partition delays no other.
 *
 *   free ──lease──▶ idle ──▶ fetching ──▶ storing ──▶ idle
 *                     │ surplus: released            ├ another process has taken it: lost
 *                     └ lease expired: lost          └ too many records wait: paused
 *
 * A partition whose topic was removed from the settings, or was deleted, may have records that wait. One process owns it until
 * they are stored, and does not fetch it (its role is `drain`).
 *
 * See docs/adr/0025-kafka-source.md.
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { KafkaStore, OwnedPartition, PartitionReport } from '../ports/kafka-store.ts';
import type { FetchedPartition, KafkaClient } from './client.ts';
import { OFFSET_OUT_OF_RANGE } from './client.ts';
import { PartitionState, type PausedReason } from './partition-state.ts';
import type { RecordWriter } from './record-writer.ts';
import { type KnownTopics, Topics, type TopicsOptions } from './topics.ts';
import type { WaitingRecords } from './waiting-records.ts';

export interface KafkaSourceOptions {
  readonly id: Uuid;
  readonly name: string;
  readonly store: KafkaStore;
  /** Loads the client: called once, when the source starts. */
  readonly connect: () => Promise<KafkaClient>;
  readonly writer: RecordWriter;
  readonly waitingRecords: WaitingRecords;
  readonly clock: Clock;
  readonly topics: readonly string[];
  readonly accept?: TopicsOptions['accept'];
  readonly start: 'earliest' | 'latest';
  readonly renewMs: number;
  readonly leaseMs: number;
  readonly onRecordsLost: (partition: PartitionState, records: bigint) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

const PAUSE_AFTER_FAILURE_MS = 500;
/** How long a partition pauses after a fetch of it alone has failed, so that the others go first. */
const SUSPECT_PAUSE_MS = 1_000;
/** A batch that was too large is fetched again after this time: an operator may have deleted it. */
const LARGE_BATCH_PAUSE_MS = 15_000;
/** Reasons that end when Kafka answers with records, or has none. */
const UNTIL_ANSWERED: ReadonlySet<PausedReason> = new Set(['position_beyond_end', 'batch_too_large']);
/** How often to check for partitions that can be fetched again, and for waiting records. */
const TICK_MS = 100;

export class KafkaSource {
  readonly #options: KafkaSourceOptions;
  readonly #partitions = new Map<number, PartitionState>();
  /** Brokers that are answering a fetch, or have failed a moment ago. */
  readonly #busyBrokers = new Set<number>();
  readonly #running = new Set<Promise<void>>();
  #client: KafkaClient | null = null;
  #topics: Topics | null = null;
  #cancelRenewal: (() => void) | null = null;
  #cancelTick: (() => void) | null = null;
  #isStopping = false;

  constructor(options: KafkaSourceOptions) {
    this.#options = options;
  }

  /** The partitions that this process owns. */
  get partitions(): Iterable<PartitionState> {
    return this.#partitions.values();
  }

  /** Does not wait for Kafka, which may be down. */
  start(): void {
    this.#run(() => this.#renew());
    this.#tick();
  }

  /** Resolves when nothing is being stored any more, and other processes may take the partitions. */
  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#cancelRenewal?.();
    this.#cancelTick?.();
    this.#options.writer.stop();
    while (this.#running.size > 0) await Promise.all(this.#running);
    this.#partitions.clear();
    try {
      if (this.#client !== null) await this.#options.store.removeConsumer(this.#options.id);
    } catch (error) {
      this.#options.onProblem('release the Kafka partitions', error);
    }
    await this.#client?.close().catch(() => {});
  }

  #run(work: () => Promise<void>): void {
    const running = work().finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async #renew(): Promise<void> {
    const { clock, renewMs, onProblem } = this.#options;
    try {
      await this.#renewLease();
    } catch (error) {
      onProblem('renew the lease on the Kafka partitions', error);
    }
    if (this.#isStopping) return;
    this.#cancelRenewal = clock.after(renewMs, () => this.#run(() => this.#renew()));
  }

  async #renewLease(): Promise<void> {
    const { store, id, name, leaseMs, clock, topics, accept, start } = this.#options;
    this.#client ??= await this.#options.connect();
    this.#topics ??= new Topics({ client: this.#client, store, names: topics, accept, start, clock });
    const known = await this.#refresh(this.#topics);
    if (this.#isStopping || known === null) return;
    // Also if no topic exists, because records of deleted topics may wait.
    const { cluster, ids } = known;
    const reports = [...this.#partitions.values()].map(toReport);
    this.#applyOwned(await store.renewLease({ id, name, cluster, topicIds: ids, leaseMs }, reports));
  }

  /** While Kafka does not answer, the process keeps its partitions. */
  async #refresh(topics: Topics): Promise<KnownTopics | null> {
    const { onProblem } = this.#options;
    try {
      await topics.refresh();
      for (const { name, error } of topics.failed)
        onProblem('read a Kafka topic', new Error(`the topic "${name}" cannot be read`, { cause: error }));
    } catch (error) {
      onProblem('ask Kafka for its topics', error);
    }
    for (const topic of topics.missing)
      onProblem('read a Kafka topic', new Error(`the topic "${topic}" does not exist`));
    return topics.known;
  }

  #applyOwned(owned: readonly OwnedPartition[]): void {
    const byId = new Map(owned.map((each) => [each.id, each]));
    for (const [id, state] of this.#partitions) {
      if (byId.get(id)?.epoch === state.epoch) continue;
      state.isLost = true;
      this.#partitions.delete(id);
    }
    for (const each of owned) {
      const known = this.#partitions.get(each.id);
      const state = known ?? new PartitionState(each);
      state.role = each.role;
      if (each.role === 'release') state.mustRelease = true;
      if (known === undefined) this.#partitions.set(each.id, state);
      else {
        if (each.done.length > 0) known.needsAdvance = true;
        // Records that an operator retries wait, too. `drain` counts them exactly.
        known.waiting = Math.max(known.waiting, each.waiting);
      }
    }
  }

  #tick(): void {
    if (this.#isStopping) return;
    this.#startWork();
    this.#cancelTick = this.#options.clock.after(TICK_MS, () => this.#tick());
  }

  /** Starts everything that can start now. */
  #startWork(): void {
    if (this.#isStopping || this.#client === null) return;
    const now = this.#options.clock.monotonic();
    const byBroker = new Map<number, PartitionState[]>();
    for (const state of this.#partitions.values()) {
      if (state.isBusy) continue;
      if (state.pausedReason === 'overflow_full' && state.waiting === 0) state.pausedReason = null;
      if (state.isLost) this.#partitions.delete(state.id);
      else if (state.mustRelease) this.#runExclusively(state, () => this.#release(state));
      else if (state.waiting > 0 && state.drainAt <= now)
        this.#runExclusively(state, () => this.#drain(state));
      else if (state.needsAdvance)
        this.#runExclusively(state, () => this.#options.writer.advance(state, state.position));
      else if (state.role === 'read' && state.resumeAt <= now && state.pausedReason !== 'overflow_full') {
        const broker = this.#client.leaderOf(state.topic, state.partition);
        if (broker === null || this.#busyBrokers.has(broker)) continue;
        byBroker.set(broker, [...(byBroker.get(broker) ?? []), state]);
      }
    }
    for (const [broker, states] of byBroker) {
      const suspect = states.find(({ isSuspect }) => isSuspect);
      this.#run(() => this.#fetch(this.#client!, broker, suspect === undefined ? states : [suspect]));
    }
  }

  /** Runs work on a partition while nothing else does. */
  #runExclusively(state: PartitionState, work: () => Promise<void>): void {
    state.isBusy = true;
    this.#run(async () => {
      try {
        await work();
      } catch (error) {
        state.resumeAt = this.#options.clock.monotonic() + PAUSE_AFTER_FAILURE_MS;
        state.drainAt = state.resumeAt;
        this.#options.onProblem('store Kafka records', error);
      }
      state.isBusy = false;
      if (state.isLost) this.#partitions.delete(state.id);
      this.#startWork();
    });
  }

  async #release(state: PartitionState): Promise<void> {
    await this.#options.store.releasePartitions(this.#options.id, [state.id]);
    state.isLost = true;
  }

  async #drain(state: PartitionState): Promise<void> {
    await this.#options.waitingRecords.drain(state);
    if (state.pausedReason === 'overflow_full' && this.#options.writer.hasRoom(state))
      state.pausedReason = null;
  }

  async #fetch(client: KafkaClient, broker: number, states: readonly PartitionState[]): Promise<void> {
    const { clock, onProblem } = this.#options;
    this.#busyBrokers.add(broker);
    for (const state of states) state.isBusy = true;
    try {
      const answers = await client.fetch(
        broker,
        states.map(({ topic, topicId, partition, position }) => ({
          topic,
          topicId,
          partition,
          offset: position,
        })),
      );
      for (const state of states) {
        state.isSuspect = false;
        const answer = answers.find(
          (each) => each.topicId === state.topicId && each.partition === state.partition,
        );
        // A fetch session leaves out partitions in which nothing has changed.
        if (answer === undefined || answer.errorCode === null) state.hasAnswered = true;
        if (answer === undefined) state.isBusy = false;
        else this.#runExclusively(state, () => this.#handleAnswer(state, answer));
      }
      this.#busyBrokers.delete(broker);
    } catch (error) {
      onProblem('read from Kafka', error);
      for (const state of states) {
        state.isBusy = false;
        state.isSuspect = true;
        if (states.length === 1) state.resumeAt = clock.monotonic() + SUSPECT_PAUSE_MS;
      }
      this.#topics?.refreshSoon();
      // Mark the broker as busy for a while, so that the process does not fetch from a failing broker in a loop.
      clock.after(PAUSE_AFTER_FAILURE_MS, () => this.#busyBrokers.delete(broker));
      return;
    }
    this.#startWork();
  }

  async #handleAnswer(state: PartitionState, answer: FetchedPartition): Promise<void> {
    const { writer, clock, onProblem } = this.#options;
    if (this.#isStopping || state.isLost || state.mustRelease) return;
    if (answer.errorCode === OFFSET_OUT_OF_RANGE) return this.#recoverPosition(state);
    if (answer.errorCode !== null) {
      this.#topics?.refreshSoon();
      state.resumeAt = clock.monotonic() + PAUSE_AFTER_FAILURE_MS;
      return onProblem('read from Kafka', new Error(`Kafka answered with error code ${answer.errorCode}`));
    }
    if (answer.isTooLarge) return this.#pauseAtLargeBatch(state);
    state.logEnd = answer.logEnd;
    if (state.pausedReason !== null && UNTIL_ANSWERED.has(state.pausedReason)) state.pausedReason = null;
    if (answer.records.length > 0) await writer.write(state, answer.records, answer.nextOffset);
    else if (answer.nextOffset > state.position) await writer.advance(state, answer.nextOffset);
  }

  #pauseAtLargeBatch(state: PartitionState): void {
    const { clock, onProblem } = this.#options;
    const { topic, partition, position } = state;
    state.pausedReason = 'batch_too_large';
    state.resumeAt = clock.monotonic() + LARGE_BATCH_PAUSE_MS;
    const message = `the batch at ${topic}/${partition}/${position} is too large when it is decompressed`;
    onProblem('read from Kafka', new Error(message));
  }

  /** Kafka has deleted the record at the position, or never had it. */
  async #recoverPosition(state: PartitionState): Promise<void> {
    const { writer, clock, onRecordsLost } = this.#options;
    const client = this.#client!;
    const first = (await client.listOffsets(state.topic, 'earliest'))[state.partition];
    if (first !== undefined && first > state.position) {
      const lost = first - state.position;
      await writer.advance(state, first, lost);
      if (!state.isLost) onRecordsLost(state, lost);
      return;
    }
    // Kafka answers, so this is not a failed fetch. The paused partition has an alert of its own.
    state.hasAnswered = true;
    state.pausedReason = 'position_beyond_end';
    state.resumeAt = clock.monotonic() + 10 * PAUSE_AFTER_FAILURE_MS;
  }
}

function toReport(state: PartitionState): PartitionReport {
  const { id, epoch, logEnd, pausedReason, hasAnswered } = state;
  state.hasAnswered = false;
  return { id, epoch, logEnd: logEnd === null ? null : String(logEnd), pausedReason, hasAnswered };
}
