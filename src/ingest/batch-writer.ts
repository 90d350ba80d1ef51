/**
 * Writes a batch of pending events: matches them with endpoints, appends them to the event store, answers each event and
 * routes its deliveries.
 *
 *   pending ──▶ matched ──▶ appended ──▶ routed, answered
 *      ▲           │ endpoints of its tenants changed meanwhile: match again; too often: write its tenants apart from each other
 *                  │ more endpoints than an event can have deliveries: 422; too many unwritten deliveries: 429 (fan-out-limit.ts)
 *                  │ large fan-out: write in several commits (fan-out-writer.ts), apart from other tenants (bulk-path.ts)
 *      └───────────┤ deadlock, lock timeout: write again apart from other events (blocked-path.ts), then bisect
 *                  │ connection lost, outcome unknown: write the same ids again, guarded against writing twice
 *                  │ invalid value or statement timeout: bisect, until only the event at fault gets an error
 *                  └ store unavailable for too long: 503
 */
import { type Clock, latestNowOf } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { maxDeliveriesOf, timeOfId, type Uuid } from '../domain/ids.ts';
import { type Problem, tenantBeingDeleted } from '../domain/problem.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import { type EventRecord, type EventStore, idempotencyKeyName } from '../ports/event-store.ts';
import type { Commit, CommittedDelivery } from '../ports/hand-over.ts';
import type { DeliveryRouter } from '../ports/stages.ts';
import { storeFailureOf } from '../ports/store-error.ts';
import type { AcceptObservers } from './accept-observers.ts';
import { type BlockedPath, divertBlocked, lockOf } from './blocked-path.ts';
import { type BulkPath, divertLargeFanOuts, divertWaiting } from './bulk-path.ts';
import { isLate, sliceRowsOf, toRecord, toRecords } from './event-record.ts';
import type { FanOutLimit } from './fan-out-limit.ts';
import { impossibleTime, isTooFarAhead } from './id-times.ts';
import type { KnownTenants } from './known-tenants.ts';
import { matchFirst } from './match-first.ts';
import {
  addDeliveries,
  answerWithHolder,
  comesFromParkedRecords,
  isDuplicate,
  keyNamesOf,
  outboxSeqsOf,
  type PendingEvent,
  partitionMarkOf,
  splitRepeatedKeys,
  storedByOther,
  toAcceptAnswer,
  withoutKey,
  withUnknownOutcome,
} from './pending-event.ts';
import {
  endpointsKeptChanging,
  rejectedValue,
  storeDidNotAnswer,
  tookTooLong,
  tooManyEndpoints,
  waitedTooLong,
} from './store-problems.ts';
import type { Subscriptions } from './subscriptions.ts';

export interface BatchWriterOptions {
  readonly eventStore: Pick<EventStore, 'append' | 'findKeyHolders' | 'ensurePartitions' | 'now'>;
  readonly endpoints: Pick<EndpointDirectory, 'version' | 'refresh'>;
  readonly subscriptions: Pick<Subscriptions, 'match' | 'explainUnmatched' | 'takeWork' | 'countLookups'>;
  readonly knownTenants: Pick<KnownTenants, 'unknownOf' | 'add'>;
  readonly router: DeliveryRouter;
  readonly fanOutLimit: Pick<FanOutLimit, 'refuseFirst'>;
  readonly observers: AcceptObservers;
  readonly clock: Clock;
  readonly random: () => number;
  readonly idempotencyTtlMs: number;
  /** An event that could not be stored within this time is answered with 503. */
  readonly giveUpAfterMs: number;
  /** Bounds how long a statement blocks its connection: about 40 µs per delivery. */
  readonly deliveriesPerCommit: number;
  /** Called after a commit that left deliveries of a large fan-out unwritten. */
  readonly onSliced: () => void;
}

export interface WriteOptions {
  /** True if an earlier try may have stored some of these ids: they must not be written twice. */
  readonly mayBeStored: boolean;
  /** Takes requests of tenants with many events or a large fan-out. Undefined: they are written in order, in several commits. */
  readonly bulk?: Pick<BulkPath, 'has' | 'add'> | undefined;
  /** Takes requests that wait for a lock. Undefined: the writer halves the batch, and rejects or retries a single event. */
  readonly blocked?: Pick<BlockedPath, 'isBlocked' | 'addBatch' | 'addEvent' | 'waitingItems'> | undefined;
  /** True if an earlier try failed with `conflict`: the next such failure halves the batch. */
  readonly hasConflicted?: boolean | undefined;
  /** True if the caller writes events of other tenants before it tries again to write those that are returned. */
  readonly takesTurns?: boolean | undefined;
  /** Called after each commit, with the number of deliveries that it wrote. */
  readonly onAppended?: ((deliveries: number) => void) | undefined;
}

const RETRY_PAUSE_MS = 100;
/** How often a batch is matched again because endpoints of its tenants have changed. One tenant may change them all the time. */
const MAX_REMATCHES = 3;

export class BatchWriter {
  readonly #options: BatchWriterOptions;

  constructor(options: BatchWriterOptions) {
    this.#options = options;
  }

  /** Resolves when every event of the batch is answered or waits in a side path of `options`. Does not throw. */
  async write(batch: readonly PendingEvent[], options: WriteOptions): Promise<void> {
    const { unique, repeated } = splitRepeatedKeys(
      divertBlocked(divertWaiting(options.bulk, batch), options, this.#options.knownTenants),
    );
    let rest: readonly PendingEvent[] = unique;
    while (rest.length > 0) rest = await this.#writePart(rest, options);
    // The same key twice in one batch: the second event is written afterwards, so that it finds the row of the first.
    if (repeated.length > 0) await this.write(repeated, options);
  }

  /** Writes the first events of the batch, as many as one commit holds. Returns the others. Does not throw. */
  async writeFirst(batch: readonly PendingEvent[], options: WriteOptions): Promise<readonly PendingEvent[]> {
    const inTime = this.#rejectOverdue(batch, waitedTooLong());
    const { unique, repeated } = splitRepeatedKeys(
      divertBlocked(inTime, options, this.#options.knownTenants),
    );
    const rest = unique.length === 0 ? [] : await this.#writePart(unique, { ...options, takesTurns: true });
    return repeated.length === 0 ? rest : [...rest, ...repeated];
  }

  /** Writes the first events of the batch, or diverts tenants with a large fan-out. Returns the other events. */
  async #writePart(batch: readonly PendingEvent[], options: WriteOptions): Promise<readonly PendingEvent[]> {
    const { endpoints, subscriptions, knownTenants, observers, fanOutLimit } = this.#options;
    const maxShared = sliceRowsOf(this.#options.deliveriesPerCommit);
    let part = batch;
    try {
      const newTenants = knownTenants.unknownOf(batch);
      if (newTenants !== null) await knownTenants.add(newTenants);
      for (let rematches = 0; ; rematches += 1) {
        if (rematches > MAX_REMATCHES) return await this.#writeApart(batch, options);
        const endpointVersion = endpoints.version;
        const matched = await matchFirst(batch, subscriptions, this.#options.deliveriesPerCommit);
        part = matched.length === batch.length ? batch : batch.slice(0, matched.length);
        const usual = divertLargeFanOuts(options.bulk, batch, matched, maxShared);
        if (usual !== null) return usual;
        // An event with a large fan-out is the only one of its part, so only the first can exceed the limit.
        const maxDeliveries = maxDeliveriesOf(part[0]!.id);
        if (matched[0]!.length > maxDeliveries) {
          await endpoints.refresh();
          if (endpoints.version !== endpointVersion) continue;
          part[0]!.reject(tooManyEndpoints(matched[0]!.length, maxDeliveries));
          break;
        }
        const others = await fanOutLimit.refuseFirst(batch, matched[0]!.length, options.mayBeStored);
        if (others !== null) return others;
        const isStale = await this.#append(part, matched, endpointVersion, options);
        subscriptions.countLookups(part.length, !isStale);
        if (!isStale) break;
        observers.onRematched();
        await endpoints.refresh();
      }
    } catch (error) {
      await this.#recover(part, options, error);
    }
    return part.length === batch.length ? [] : batch.slice(part.length);
  }

  /**
   * The endpoints of a tenant change faster than the batch can be matched and written. Writes the events of each tenant
   * apart, so that only events of this tenant wait. Returns events that are to be written later.
   */
  async #writeApart(batch: readonly PendingEvent[], options: WriteOptions): Promise<readonly PendingEvent[]> {
    if (options.takesTurns) return this.#rejectOverdue(batch, endpointsKeptChanging());
    if (options.bulk !== undefined) {
      options.bulk.add(batch);
      return [];
    }
    if (batch.length > 1) {
      await this.#bisect(batch, options);
      return [];
    }
    const { committed } = batch[0]!;
    if (committed === null) return this.#rejectOverdue(batch, endpointsKeptChanging());
    // The drainer reads an outbox row again later. A relay must not skip an event, so try until it is written.
    if (committed.outboxSeq === null) return batch;
    batch[0]!.reject(endpointsKeptChanging());
    return [];
  }

  /** Appends and answers the events. Returns true if nothing was written because endpoints of their tenants have changed. */
  async #append(
    batch: readonly PendingEvent[],
    matched: readonly (readonly Endpoint[])[],
    endpointVersion: number,
    { mayBeStored, onAppended }: WriteOptions,
  ): Promise<boolean> {
    const { eventStore, observers, clock, onSliced } = this.#options;
    // If our clock or the store's has jumped ahead, an event seems old and would be due in weeks: use the earlier time. After a step of
    // the clock, use the time at which a committed event was made.
    const seemsLate = batch.some(({ id }) => isLate(id, clock.now()));
    const now = seemsLate ? Math.min(await eventStore.now(), clock.now()) : clock.now();
    const sentAt = clock.now();
    const timeOf = ({ committed, id }: PendingEvent): number =>
      committed !== null && clock.isSteady === false ? timeOfId(id) : now;
    const records = await toRecords(batch, matched, (item, to) => this.#toRecord(item, to, timeOf(item)));
    const result = await eventStore.append(records, {
      endpointVersion,
      mayBeStored,
      idempotencyTtlMs: this.#options.idempotencyTtlMs,
      now: latestNowOf(clock),
      mayExpireKeys: clock.isSteady ?? true,
      outboxSeqs: outboxSeqsOf(batch),
      fromParkedRecords: comesFromParkedRecords(batch),
      partition: partitionMarkOf(batch),
    });
    if (result.stale) return true;
    onAppended?.(records.reduce((sum, { deliveries }) => sum + deliveries.length, 0));
    observers.onCommitted(batch, sentAt, clock.now());
    await this.#answerAll(batch, records, result.written, { sentAt, endpointVersion });
    // A large fan-out is alone in its commit.
    if (records[0]!.unwritten !== undefined) onSliced();
    return false;
  }

  #toRecord(item: PendingEvent, matched: readonly Endpoint[], now: number): EventRecord {
    const { subscriptions, random, deliveriesPerCommit } = this.#options;
    // Enabled endpoints come first: if the first one is disabled, all are.
    const isSent = matched[0]?.enabled ?? false;
    const reason = isSent || isDuplicate(item) ? null : subscriptions.explainUnmatched(item.event, matched);
    return toRecord(item, matched, { unmatchedReason: reason, now, random, deliveriesPerCommit });
  }

  async #answerAll(
    batch: readonly PendingEvent[],
    records: readonly EventRecord[],
    written: ReadonlySet<Uuid> | 'all',
    commit: Commit,
  ): Promise<void> {
    const committed: CommittedDelivery[] = [];
    /** Indexes of the events that this statement did not write. */
    const skipped: number[] = [];
    for (const [index, item] of batch.entries()) {
      if (written === 'all' || written.has(item.id)) addDeliveries(committed, item, records[index]!);
      else skipped.push(index);
    }
    if (committed.length > 0) this.#options.router.routeCommitted(committed, commit);
    for (const [index, item] of batch.entries()) {
      if (written === 'all' || written.has(item.id)) this.#resolve(item, records[index]!);
    }
    if (skipped.length === 0) return;
    try {
      await this.#answerSkipped(skipped, batch, records);
    } catch (error) {
      // Recover only these: the rest of the batch is stored and answered.
      const unanswered = skipped.map((index) => batch[index]!);
      await this.#recover(unanswered, { mayBeStored: true }, error);
    }
  }

  #resolve(item: PendingEvent, record: EventRecord): void {
    const answer = toAcceptAnswer(item, record);
    item.resolve(answer);
    this.#options.observers.onAccepted(answer);
  }

  /** Answers events that this statement did not write: an earlier try did, or another event holds the key. */
  async #answerSkipped(
    skipped: readonly number[],
    batch: readonly PendingEvent[],
    records: readonly EventRecord[],
  ): Promise<void> {
    const { eventStore, observers, router } = this.#options;
    const keys = skipped.flatMap((index) => {
      const { tenant, idempotencyKey } = batch[index]!.event;
      return idempotencyKey === null ? [] : [{ tenant, key: idempotencyKey }];
    });
    const holders = await eventStore.findKeyHolders(keys);
    const storedEarlier: CommittedDelivery[] = [];
    const writeAgain: PendingEvent[] = [];
    for (const index of skipped) {
      const item = batch[index]!;
      const key = item.event.idempotencyKey;
      const holder = key === null ? undefined : holders.get(idempotencyKeyName(item.event.tenant, key));
      if (holder !== undefined && holder.eventId !== item.id) {
        observers.onRepeated();
        if (item.committed === null) answerWithHolder(item, holder);
        else writeAgain.push(withoutKey(item, holder));
      } else if (key !== null && holder === undefined && (item.committed?.outboxSeq ?? null) === null) {
        // The key expired between the two statements, so this event was not written. An outbox row needs no second
        // write: either it is still there and will be read again, or another process stored it.
        writeAgain.push(item);
      } else {
        const record = records[index]!;
        addDeliveries(storedEarlier, item, record);
        // The process that stored the event also reports it to the observers.
        if (storedByOther(item)) item.resolve(toAcceptAnswer(item, record));
        else this.#resolve(item, record);
      }
    }
    if (storedEarlier.length > 0) router.routeCommitted(storedEarlier, null);
    if (writeAgain.length > 0) await this.write(writeAgain, { mayBeStored: true });
  }

  async #recover(batch: readonly PendingEvent[], options: WriteOptions, error: unknown): Promise<void> {
    const failure = storeFailureOf(error);
    if (failure === 'invalid_row') {
      if (batch.length > 1) return this.#bisect(batch, options);
      return batch[0]!.reject(rejectedValue(error));
    }
    if (failure === 'closed_tenant') {
      const { tenant } = batch[0]!.event;
      if (batch.some(({ event }) => event.tenant !== tenant)) return this.#bisect(batch, options);
      for (const item of batch) item.reject(tenantBeingDeleted(tenant));
      return;
    }
    if (failure === 'timeout') return this.#recoverFromTimeout(batch, options, error);
    if (failure === 'conflict') return this.#recoverFromConflict(batch, options, error);
    if (failure === 'other' || failure === 'fenced') {
      // A trigger or a broken page may fail on one event only. Bisect, because committed events must not fail with it.
      if (failure === 'other' && batch.length > 1 && batch[0]!.committed !== null)
        return this.#bisect(batch, options);
      for (const item of batch) item.reject(error);
      return;
    }
    if (failure === 'missing_partition') {
      const { clock } = this.#options;
      if (batch.some(({ committed, id }) => committed !== null && isTooFarAhead(id, committed, clock.now())))
        return batch.length > 1
          ? this.#bisect(batch, options)
          : batch[0]!.reject(impossibleTime(batch[0]!.id));
      const times = batch.map(({ id }) => timeOfId(id));
      const range = { oldestMs: Math.min(...times), newestMs: Math.max(...times) };
      await this.#options.eventStore.ensurePartitions(range).catch(() => {});
    }
    const inTime = this.#rejectOverdue(batch, storeDidNotAnswer(error));
    if (inTime.length === 0) return;
    await this.#pause();
    // Set `mayBeStored` from now on: an event that is written twice would be delivered twice. The bulk path cannot write these events:
    // it writes only events that are certainly new.
    if (failure === 'outcome_unknown')
      await this.write(inTime.map(withUnknownOutcome), { ...options, bulk: undefined, mayBeStored: true });
    else await this.write(inTime, options);
  }

  /** Rejects requests that have waited too long. No client waits for committed events: they are always bisected. */
  async #recoverFromTimeout(
    batch: readonly PendingEvent[],
    options: WriteOptions,
    error: unknown,
  ): Promise<void> {
    if (batch.length === 1) return batch[0]!.reject(tookTooLong(error));
    const inTime =
      batch[0]!.committed === null ? this.#rejectOverdue(batch, storeDidNotAnswer(error)) : batch;
    if (inTime.length > 1) await this.#bisect(inTime, options);
    else if (inTime.length === 1) await this.write(inTime, options);
  }

  /**
   * Writes the whole batch once more: after a deadlock that is enough. If it fails again, halves it until only the
   * events that wait for a lock are left. Requests do all this on the blocked path, so that other requests need not
   * wait.
   */
  async #recoverFromConflict(
    batch: readonly PendingEvent[],
    options: WriteOptions,
    error: unknown,
  ): Promise<void> {
    const { blocked, mayBeStored, hasConflicted = false } = options;
    const inTime = this.#rejectOverdue(batch, storeDidNotAnswer(error));
    if (inTime.length === 0) return;
    if (inTime.length === 1 && blocked !== undefined)
      return blocked.addEvent(inTime[0]!, mayBeStored, lockOf(inTime[0]!, this.#options.knownTenants));
    if (!hasConflicted) {
      if (blocked !== undefined) return blocked.addBatch(inTime, mayBeStored, keyNamesOf(inTime));
      await this.#pause();
      return this.write(inTime, { ...options, hasConflicted: true });
    }
    if (inTime.length > 1) return this.#bisect(inTime, options);
    // The drainer reads an outbox row again later. A relay must not skip an event, so try until it is written.
    if (inTime[0]!.committed?.outboxSeq != null) return inTime[0]!.reject(storeDidNotAnswer(error));
    await this.#pause();
    await this.write(inTime, options);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(RETRY_PAUSE_MS, resolve));
  }

  /** Rejects events that have waited too long, with `problem`. Returns the others. */
  #rejectOverdue(batch: readonly PendingEvent[], problem: Problem): PendingEvent[] {
    const { clock, giveUpAfterMs } = this.#options;
    const oldest = clock.monotonic() - giveUpAfterMs;
    return batch.filter((item) => {
      if (item.receivedAt > oldest) return true;
      item.reject(problem);
      return false;
    });
  }

  async #bisect(batch: readonly PendingEvent[], options: WriteOptions): Promise<void> {
    const middle = batch.length >> 1;
    await this.write(batch.slice(0, middle), options);
    await this.write(batch.slice(middle), options);
  }
}
