/**
 * Stores the records of a partition that wait: those of tenants over their limit, and rejected ones that an operator retries.
 * The owner of the partition does so, in the order of the records. The statement that stores an event deletes its row.
 */
import type { Clock } from '../domain/clock.ts';
import type { CommittedEvent, NewEvent } from '../domain/event.ts';
import { Problem } from '../domain/problem.ts';
import type { KafkaStore, StoredParkedRecord } from '../ports/kafka-store.ts';
import type { RateLimits } from '../ports/rate-limits.ts';
import type { AcceptTopicReader } from './accept-topic-reader.ts';
import { type MappedRecord, type RecordMapping, UnmappedRecordError } from './mapping.ts';
import type { PartitionState } from './partition-state.ts';
import { type EventSink, judge, type RecordWriterOptions, shorten } from './record-writer.ts';

export interface WaitingRecordsOptions {
  readonly store: KafkaStore;
  readonly sink: EventSink;
  readonly mapping: RecordMapping;
  readonly readEvent: (mapped: MappedRecord) => NewEvent;
  readonly acceptTopic?: AcceptTopicReader | null;
  readonly tenantRates: RateLimits;
  readonly clock: Clock;
  readonly batchRows: number;
  readonly onRejected: RecordWriterOptions['onRejected'];
  readonly onStored: (topic: string, records: number) => void;
}

const POLL_MS = 200;

export class WaitingRecords {
  readonly #options: WaitingRecordsOptions;

  constructor(options: WaitingRecordsOptions) {
    this.#options = options;
  }

  /** Stores as many waiting records as the limits of their tenants allow. */
  async drain(state: PartitionState): Promise<void> {
    const { store, clock, batchRows } = this.#options;
    state.drainAt = clock.monotonic() + POLL_MS;
    /** Tenants whose limit is used up, or with a failed record: their other records wait too, so that they stay in order. */
    const heldBack = new Set<string>();
    for (;;) {
      const rows = await store.readWaiting(state.id, { max: batchRows, exceptTenants: [...heldBack] });
      const mayHaveMore = rows.length === batchRows;
      const hasProgress = await this.#storeSome(state, rows, heldBack);
      if (!mayHaveMore || state.mustRelease || state.isLost || !hasProgress) break;
    }
    const counts = await store.countWaiting(state.id);
    state.waitingTenants = new Set([...counts.keys()].filter((tenant) => tenant !== null));
    state.waiting = [...counts.values()].reduce((sum, count) => sum + count, 0);
    if (state.waiting === 0) state.failures.clear();
  }

  /** Returns true if the next read returns other records: some no longer wait, or the limit of another tenant is used up. */
  async #storeSome(
    state: PartitionState,
    rows: readonly StoredParkedRecord[],
    heldBack: Set<string>,
  ): Promise<boolean> {
    const { store, sink, tenantRates, onStored } = this.#options;
    const events: CommittedEvent[] = [];
    const rejected: { seq: string; reason: string }[] = [];
    const dropped: string[] = [];
    const limited = new Set<string>();
    /** Records of held-back tenants whose rows name another tenant: `exceptTenants` would not exclude them from the next read. */
    const moved: { seq: string; tenant: string }[] = [];
    for (const row of rows) {
      const event = this.#read(state, row);
      if (typeof event === 'string') {
        rejected.push({ seq: row.seq, reason: event });
        continue;
      }
      const { tenant } = event;
      const isHeld = heldBack.has(tenant) || limited.has(tenant);
      if (!isHeld && tenantRates.take(tenant) === 0) {
        events.push(event);
        continue;
      }
      if (!heldBack.has(tenant)) limited.add(tenant);
      if (row.tenant !== tenant) moved.push({ seq: row.seq, tenant });
    }
    if (moved.length > 0) await store.setWaitingTenants(moved);
    const answers = events.length === 0 ? [] : await sink.accept(events);
    let stored = 0;
    for (const [index, { outboxSeq, tenant }] of events.entries()) {
      const seq = outboxSeq!;
      const verdict = judge(answers[index]!, state.failures.get(seq) ?? 0);
      if (verdict.kind === 'stored') stored += 1;
      else if (verdict.kind === 'dropped') dropped.push(seq);
      else if (verdict.kind === 'rejected') rejected.push({ seq, reason: verdict.reason });
      else if (verdict.kind === 'limited') limited.add(tenant);
      else heldBack.add(tenant);
      if (verdict.kind === 'retry') state.failures.set(seq, verdict.failures);
      else if (verdict.kind !== 'limited') state.failures.delete(seq);
    }
    if (stored > 0) onStored(state.topic, stored);
    await this.#remove(state, rows, { rejected, dropped });
    for (const tenant of limited) heldBack.add(tenant);
    return stored + rejected.length + dropped.length + limited.size + moved.length > 0;
  }

  async #remove(
    { topic, partition }: PartitionState,
    rows: readonly StoredParkedRecord[],
    {
      rejected,
      dropped,
    }: { rejected: readonly { seq: string; reason: string }[]; dropped: readonly string[] },
  ): Promise<void> {
    const { store, onRejected } = this.#options;
    if (rejected.length > 0) await store.rejectWaiting(rejected);
    for (const { seq, reason } of rejected)
      onRejected({ topic, partition, offset: rows.find((row) => row.seq === seq)!.offset }, reason);
    if (dropped.length > 0) await store.deleteWaiting(dropped);
  }

  #read(state: PartitionState, row: StoredParkedRecord): CommittedEvent | string {
    const { mapping, readEvent, acceptTopic } = this.#options;
    const { topic, partition } = state;
    const { key, value, headers, recordedAt } = row;
    try {
      const record = {
        topic,
        partition,
        offset: BigInt(row.offset),
        timestampMs: recordedAt,
        key,
        value,
        headers,
      };
      const isFromAcceptLog = topic === acceptTopic?.topic;
      const event = isFromAcceptLog ? acceptTopic.read(record) : readEvent(mapping.map(record));
      return { ...event, id: row.id, outboxSeq: row.seq, record: { kind: 'parked' }, isFromAcceptLog };
    } catch (error) {
      if (error instanceof UnmappedRecordError || error instanceof Problem) return shorten(error.message);
      throw error;
    }
  }
}
