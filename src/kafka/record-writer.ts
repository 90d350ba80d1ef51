/**
 * Stores the records of a partition.
 *
 *   read ──▶ mapped ──▶ stored as an event; the same statement moves the position
 *     │         ├ its tenant is over its limit, or has records that wait ──▶ waiting (set aside, stored later, in order)
 *     │         │     └ too many wait already: the partition pauses before this record
 *     │         ├ the database is unavailable: retried, and the records after it wait
 *     │         ├ it alone fails five times ──▶ rejected
 *     │         ├ the data of its tenant is being deleted: dropped
 *     │         └ another process has taken the partition: nothing is written, and this process drops the partition
 *     └ it cannot be mapped ──▶ rejected (set aside, with the reason) ──an operator retries it──▶ waiting
 *           └ too many are rejected already: the partition pauses before this record. Never in the accept topic: an own record is
 *             kept in any case, because a client got 202 for it, and one of another deployment is left out
 *
 * Setting records aside moves the position in the same commit. So after a crash at any point each record is an event, or set
 * aside, or read again.
 */
import type { Clock } from '../domain/clock.ts';
import type { CommittedEvent, NewEvent, PartitionBatch } from '../domain/event.ts';
import { eventIdFromForeignId, newEventId, type Uuid } from '../domain/ids.ts';
import { isProblem, Problem } from '../domain/problem.ts';
import type { KafkaStore, ParkedRecord } from '../ports/kafka-store.ts';
import type { RateLimits } from '../ports/rate-limits.ts';
import { isStoreOutage, storeFailureOf } from '../ports/store-error.ts';
import type { AcceptTopicReader } from './accept-topic-reader.ts';
import { type MappedRecord, type RecordMapping, UnmappedRecordError } from './mapping.ts';
import type { PartitionState, PausedReason } from './partition-state.ts';
import type { KafkaRecord } from './record.ts';

/** Stores committed events and returns one answer per event. */
export interface EventSink {
  accept(events: readonly CommittedEvent[]): Promise<readonly (object | Error)[]>;
}

export interface RecordWriterOptions {
  readonly store: KafkaStore;
  readonly sink: EventSink;
  readonly mapping: RecordMapping;
  /** Validates the fields as the API does. Throws a `Problem`. */
  readonly readEvent: (mapped: MappedRecord) => NewEvent;
  /** The records of the accept topic. Null: the process does not read it. */
  readonly acceptTopic?: AcceptTopicReader | null;
  readonly tenantRates: RateLimits;
  readonly clock: Clock;
  readonly batchRows: number;
  readonly batchBytes: number;
  /** How many records of a partition may wait. */
  readonly maxWaiting: number;
  /** How many rejected records of a partition are kept. */
  readonly maxRejected: number;
  readonly onRejected: (
    record: Pick<KafkaRecord, 'topic' | 'partition'> & { offset: string },
    reason: string,
  ) => void;
  readonly onStored: (topic: string, records: number) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface Chunk {
  readonly records: readonly KafkaRecord[];
  /** Where to read next. */
  readonly upTo: bigint;
}

/** Records with their events, and those to set aside. */
interface ClassifiedRecords {
  readonly events: ReadonlyMap<KafkaRecord, CommittedEvent>;
  readonly parked: ParkedRecord[];
  readonly upTo: bigint;
}

const RETRY_PAUSE_MS = 200;
/** How often a partition with too many rejected records is read, to see whether there is room again. */
const REJECTED_PAUSE_MS = 5_000;
/** Reasons to stop writing in the middle of an answer. */
const FULL: ReadonlySet<PausedReason | null> = new Set(['overflow_full', 'rejected_full']);
/** A paused partition is read again when this part of its room is free. */
const FREE_TO_RESUME = 0.1;
/** A record that fails this often for a reason that may be temporary is rejected. */
const MAX_FAILURES = 5;
const MAX_REASON_LENGTH = 2_000;

export class RecordWriter {
  readonly #options: RecordWriterOptions;
  #isStopping = false;

  constructor(options: RecordWriterOptions) {
    this.#options = options;
  }

  /** From now on `write` returns after the current try. What is not stored is read again later, by another process. */
  stop(): void {
    this.#isStopping = true;
  }

  /** True if a partition that paused because too many records wait may be read again. */
  hasRoom({ waiting }: PartitionState): boolean {
    return waiting <= this.#options.maxWaiting * (1 - FREE_TO_RESUME);
  }

  /** Stores records in order and moves the position to `nextOffset`, or as far as it gets. */
  async write(state: PartitionState, records: readonly KafkaRecord[], nextOffset: bigint): Promise<void> {
    if (state.pausedReason === 'rejected_full') state.pausedReason = null;
    for (const chunk of this.#chunksOf(records, nextOffset)) {
      if (state.isLost || this.#isStopping || FULL.has(state.pausedReason)) return;
      await this.#countRejected(state);
      await this.#writeChunk(state, await this.#leaveOut(state, chunk));
    }
  }

  /** Moves the position without records: past markers of transactions, or past records that Kafka has deleted. */
  async advance(state: PartitionState, position: bigint, lost = 0n): Promise<void> {
    await this.#advance(state, position, [], lost);
  }

  *#chunksOf(records: readonly KafkaRecord[], nextOffset: bigint): Iterable<Chunk> {
    const { batchRows, batchBytes } = this.#options;
    let from = 0;
    while (from < records.length) {
      let to = from;
      let bytes = 0;
      while (to < records.length && to - from < batchRows && (to === from || bytes < batchBytes)) {
        bytes += records[to]!.value?.length ?? 0;
        to += 1;
      }
      yield { records: records.slice(from, to), upTo: records[to]?.offset ?? nextOffset };
      from = to;
    }
  }

  /** Leaves out records of the accept topic that a producer wrote twice, or whose tenant was deleted since. */
  async #leaveOut({ topic }: PartitionState, chunk: Chunk): Promise<Chunk> {
    const { acceptTopic } = this.#options;
    if (acceptTopic?.topic !== topic) return chunk;
    return { ...chunk, records: await acceptTopic.select(chunk.records) };
  }

  async #writeChunk(state: PartitionState, chunk: Chunk): Promise<void> {
    const { events, parked, upTo } = this.#classify(state, chunk);
    const outcome =
      events.size === 0
        ? { stored: 0, rejected: [] }
        : await this.#store(state, events, parked.length > 0, upTo);
    // Not all are stored: the position stays, and the next owner reads the chunk again.
    if (outcome === null) return;
    const { stored, rejected } = outcome;
    parked.push(...rejected);
    if (parked.length > 0 || events.size === 0 || state.needsAdvance) {
      // If this throws, the chunk is read again, without the records that are stored.
      const rejectedOffsets = new Set(rejected.map(({ offset }) => offset));
      const storedOffsets = [...events.keys()]
        .map(({ offset }) => String(offset))
        .filter((each) => !rejectedOffsets.has(each));
      state.done = new Set([...state.done, ...storedOffsets]);
      await this.#advance(state, upTo, parked, 0n);
      state.done = new Set([...state.done].filter((offset) => BigInt(offset) >= upTo));
    } else state.position = upTo;
    if (stored > 0) this.#options.onStored(state.topic, stored);
  }

  /** Counts only when the partition is new or seems full, because operators retry and discard records meanwhile. */
  async #countRejected(state: PartitionState): Promise<void> {
    const { store, maxRejected } = this.#options;
    if (state.rejected === null || state.rejected >= maxRejected)
      state.rejected = await store.countRejected(state.id, maxRejected);
  }

  /** Maps the records. Stops before a record for which there is no room among the waiting or rejected ones. */
  #classify(state: PartitionState, { records, upTo }: Chunk): ClassifiedRecords {
    const { onProblem } = this.#options;
    const events = new Map<KafkaRecord, CommittedEvent>();
    const parked: ParkedRecord[] = [];
    for (const record of records) {
      if (state.done.has(String(record.offset))) continue;
      const event = this.#read(state, record);
      if (typeof event === 'string') {
        const room = this.#roomForRejected(state, record, parked);
        if (room === 'pause') {
          this.#pausePartition(state, 'rejected_full', REJECTED_PAUSE_MS);
          return { events, parked, upTo: record.offset };
        }
        if (room === 'keep') parked.push(this.#park(record, 'rejected', event));
        else onProblem('keep a rejected Kafka record', new Error(`too many are kept already (${event})`));
      } else if (!this.#mustWait(state, event.tenant)) events.set(record, event);
      else if (state.waiting + parked.length < this.#options.maxWaiting) {
        state.waitingTenants = new Set([...state.waitingTenants, event.tenant]);
        parked.push({ ...this.#park(record, 'waiting', null), id: event.id, tenant: event.tenant });
      } else {
        this.#pausePartition(state, 'overflow_full', RETRY_PAUSE_MS);
        return { events, parked, upTo: record.offset };
      }
    }
    return { events, parked, upTo };
  }

  /** The deployment that wrote a record of the accept topic reads it, too, so another one may leave it out. */
  #roomForRejected(
    { topic, rejected }: PartitionState,
    record: KafkaRecord,
    parked: readonly ParkedRecord[],
  ): 'keep' | 'leave_out' | 'pause' {
    const { acceptTopic, maxRejected } = this.#options;
    if ((rejected ?? 0) + countIn(parked, 'rejected') < maxRejected) return 'keep';
    if (acceptTopic?.topic !== topic) return 'pause';
    return acceptTopic.isOwn(record) ? 'keep' : 'leave_out';
  }

  #pausePartition(state: PartitionState, reason: PausedReason, ms: number): void {
    state.pausedReason = reason;
    state.resumeAt = this.#options.clock.monotonic() + ms;
  }

  /** The limit of the tenant applied when the API accepted a record of the accept topic. */
  #mustWait(state: PartitionState, tenant: string): boolean {
    if (state.topic === this.#options.acceptTopic?.topic) return state.waitingTenants.has(tenant);
    return state.waitingTenants.has(tenant) || this.#options.tenantRates.take(tenant) > 0;
  }

  /** Returns the event, or why the record cannot become one. */
  #read(state: Pick<PartitionState, 'topicId'>, record: KafkaRecord): CommittedEvent | string {
    const { acceptTopic, mapping, readEvent } = this.#options;
    try {
      if (record.topic === acceptTopic?.topic)
        return { ...acceptTopic.read(record), outboxSeq: null, isFromAcceptLog: true };
      const mapped = mapping.map(record);
      const event = readEvent(mapped);
      return { ...event, id: this.#idOf(state, record, mapped.happenedAt), outboxSeq: null };
    } catch (error) {
      if (error instanceof UnmappedRecordError || error instanceof Problem) return shorten(error.message);
      throw error;
    }
  }

  /** Derives the id from the record if that says when the event happened. Otherwise the id has the time of acceptance. */
  #idOf({ topicId }: { topicId: string }, record: KafkaRecord, happenedAt: number | null): Uuid {
    const now = this.#options.clock.now();
    if (happenedAt === null || happenedAt > now) return newEventId(now);
    return eventIdFromForeignId(`${topicId}/${record.partition}/${record.offset}`, happenedAt);
  }

  #park(record: KafkaRecord, parkedState: ParkedRecord['state'], reason: string | null): ParkedRecord {
    const { topic, partition, key, value, headers, timestampMs } = record;
    const offset = String(record.offset);
    if (reason !== null) this.#options.onRejected({ topic, partition, offset }, reason);
    const { acceptTopic, mapping, clock } = this.#options;
    const known = record.topic === acceptTopic?.topic ? acceptTopic.identify(record) : null;
    return {
      // The client of the API knows the id of a record of the accept topic.
      id: known?.id ?? newEventId(clock.now()),
      offset,
      state: parkedState,
      // Expunging a tenant finds its rejected records by this name.
      tenant: known?.tenant ?? (parkedState === 'rejected' ? mapping.tenantOf(record) : null),
      key,
      value,
      headers,
      recordedAt: timestampMs,
      reason,
    };
  }

  /** Retries until each event is stored, rejected or dropped. Null: another process owns the partition, or this one stops. */
  async #store(
    state: PartitionState,
    events: ReadonlyMap<KafkaRecord, CommittedEvent>,
    hasParked: boolean,
    upTo: bigint,
  ): Promise<{ stored: number; rejected: ParkedRecord[] } | null> {
    const batch: PartitionBatch = {
      partitionId: state.id,
      epoch: state.epoch,
      upTo: String(upTo),
      // If records must be set aside too, the commit that does so moves the position.
      events: hasParked || state.needsAdvance ? -1 : events.size,
    };
    const rejected: ParkedRecord[] = [];
    let stored = 0;
    const failures = new Map<KafkaRecord, number>();
    let pending = [...events.keys()];
    for (;;) {
      const answers = await this.#options.sink.accept(
        pending.map((record) => ({
          ...events.get(record)!,
          record: { kind: 'partition', batch, offset: String(record.offset) },
        })),
      );
      const failed: KafkaRecord[] = [];
      for (const [index, record] of pending.entries()) {
        const verdict = judge(answers[index]!, failures.get(record) ?? 0);
        if (verdict.kind === 'stored') stored += 1;
        else if (verdict.kind === 'lost') state.isLost = true;
        else if (verdict.kind === 'retry' || verdict.kind === 'limited') {
          if (verdict.kind === 'retry') failures.set(record, verdict.failures);
          failed.push(record);
        } else if (verdict.kind === 'dropped') state.needsAdvance = true;
        else if (verdict.kind === 'rejected')
          rejected.push({
            ...this.#park(record, 'rejected', verdict.reason),
            tenant: events.get(record)!.tenant,
          });
      }
      if (state.isLost) return null;
      if (failed.length === 0) return { stored, rejected };
      state.needsAdvance = true;
      if (this.#isStopping) return null;
      await this.#pause(RETRY_PAUSE_MS);
      pending = failed;
    }
  }

  /**
   * Moves the position and sets records aside, in one commit. If the store refuses the rows, sets them aside without the parts
   * that it may refuse. If it refuses these too, pauses the partition visibly, and throws.
   */
  async #advance(
    state: PartitionState,
    position: bigint,
    parked: readonly ParkedRecord[],
    lost: bigint,
  ): Promise<void> {
    const { store, onProblem } = this.#options;
    const { id, epoch } = state;
    const advance = { id, epoch, position: String(position), lost: String(lost) };
    let failures = 0;
    for (;;) {
      try {
        const isReduced = failures >= MAX_FAILURES;
        const isOwned = await store.advance({ ...advance, parked: isReduced ? parked.map(reduce) : parked });
        if (!isOwned) {
          state.isLost = true;
          return;
        }
        state.position = position;
        state.needsAdvance = false;
        if (state.pausedReason === 'records_refused') state.pausedReason = null;
        state.waiting += countIn(parked, 'waiting');
        state.rejected = (state.rejected ?? 0) + countIn(parked, 'rejected');
        return;
      } catch (error) {
        onProblem('move the position in a Kafka partition', error);
        if (this.#isStopping) return;
        if (!isStoreOutage(error)) failures += 1;
        if (failures >= 2 * MAX_FAILURES) {
          state.pausedReason = 'records_refused';
          throw error;
        }
        await this.#pause(RETRY_PAUSE_MS);
      }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve));
  }
}

const countIn = (parked: readonly ParkedRecord[], state: ParkedRecord['state']): number =>
  parked.filter((record) => record.state === state).length;

/** Leaves out values that PostgreSQL may refuse. It takes any key, value and headers, and waiting records need their tenant. */
const reduce = (record: ParkedRecord): ParkedRecord => ({
  ...record,
  recordedAt: 0,
  tenant: record.state === 'waiting' ? record.tenant : null,
  reason: record.reason === null ? null : 'PostgreSQL refused to store the reason',
});

type Verdict =
  | { readonly kind: 'stored' | 'lost' | 'dropped' | 'limited' }
  | { readonly kind: 'retry'; readonly failures: number }
  | { readonly kind: 'rejected'; readonly reason: string };

/** Decides what happens to a record that has failed `failures` times, from the answer of the accept stage. */
export function judge(answer: object | Error, failures: number): Verdict {
  if (!(answer instanceof Error)) return { kind: 'stored' };
  if (storeFailureOf(answer) === 'fenced') return { kind: 'lost' };
  if (isProblem(answer, 'invalid')) return { kind: 'rejected', reason: reasonOf(answer) };
  // The data of the tenant is being deleted, so nothing of it may be kept.
  if (isProblem(answer, 'conflict')) return { kind: 'dropped' };
  // The tenant has too many unwritten deliveries. That is no failure of the record.
  if (isProblem(answer, 'rate_limited')) return { kind: 'limited' };
  const isOutage = isProblem(answer, 'unavailable') && storeFailureOf(answer.cause) !== 'timeout';
  const count = failures + (isOutage ? 0 : 1);
  return count >= MAX_FAILURES
    ? { kind: 'rejected', reason: reasonOf(answer) }
    : { kind: 'retry', failures: count };
}

/** A `Problem` hides the database's message from API clients. Operators may see it. */
function reasonOf(error: Error): string {
  const { cause } = error;
  const hasCause = error instanceof Problem && cause instanceof Error;
  return shorten(hasCause ? `${error.message} (${cause.message})` : error.message);
}

/** The message may quote the record, which may contain characters that PostgreSQL's text does not take. */
export const shorten = (reason: string): string =>
  reason.slice(0, MAX_REASON_LENGTH).replaceAll('\0', '\ufffd').toWellFormed();
