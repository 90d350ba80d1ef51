/**
 * Records the results of attempts. Results that arrive while a commit runs share the next commit. The result of a success
 * that nothing depends on waits a few milliseconds for others first: a commit for one result costs as much as one for ten. The settler
 * retries until a result is recorded, because a delivery without a recorded result is sent again. If the store refuses a batch, the settler
 * bisects it and records the result that causes the error without any data of the receiver. A result that the store
 * still refuses is set aside and tried again later, so that the others do not wait for it. A batch that has to wait
 * for a lock is left to `BlockedResults`.
 */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { EndpointNote } from '../domain/operational.ts';
import type { HealthChange, Settlement, SettlementSink } from '../ports/delivery-queue.ts';
import type { ResultRecorder } from '../ports/stages.ts';
import type { StoreFailure } from '../ports/store-error.ts';
import { BlockedResults, isBlockedBy, settleFailureOf } from './blocked-results.ts';
import { combineHealth } from './combine-health.ts';
import { type PendingResult, splitBatch, takeOnePerDelivery } from './pending-result.ts';

export interface SettlerOptions {
  readonly sink: SettlementSink;
  readonly clock: Clock;
  readonly batchRows: number;
  /** How long the result of a success waits for others, so that they share a commit. 0: it does not wait. */
  readonly lingerMs: number;
  readonly worker: { readonly workerId: Uuid; readonly workerName: string };
  /** The live tail, which shows settlements that moved their delivery. `isWatched` is true while someone watches. */
  readonly tail?:
    | { readonly isWatched: boolean; onSettled(settlements: readonly Settlement[]): void }
    | undefined;
  /** Called after each batch, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
  readonly onProblem: (what: string, error: unknown) => void;
}

const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const FIRST_PAUSE_MS = 50;
/** Retry cap: recovery is noticed within 300 ms. If the worker dies before, unrecorded deliveries are sent again. */
const LONGEST_PAUSE_MS = 300;
/** How long a result that the store refuses by itself is set aside. */
const SET_ASIDE_MS = 30_000;
/** Failures that a smaller batch may avoid. */
const SPLITS_ON: ReadonlySet<StoreFailure> = new Set(['invalid_row', 'other']);

export class Settler implements ResultRecorder {
  readonly #options: SettlerOptions;
  readonly #batcher: Batcher<PendingResult>;
  readonly #blocked: BlockedResults;
  /** The latest health of each endpoint that is not recorded yet. Results may be recorded in another order. */
  readonly #latestHealth = new Map<Uuid, { readonly change: HealthChange; readonly pending: number }>();

  constructor(options: SettlerOptions) {
    this.#options = options;
    this.#blocked = new BlockedResults({
      clock: options.clock,
      write: (batch) => this.#writeOnce(batch, true),
      onRefused: (batch) => {
        for (const item of batch) this.#batcher.add(item);
      },
      onProblem: options.onProblem,
    });
    this.#batcher = new Batcher<PendingResult>({
      maxItems: options.batchRows,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: ({ settlement }) => 1024 + (settlement.attempt?.outcome.responseBody?.length ?? 0),
      write: (batch) => this.#write(batch),
      linger: {
        ms: options.lingerMs,
        clock: options.clock,
        canWait: ({ settlement, health }) => canWait(settlement, health),
      },
      onWritten: options.onBatchWritten,
    });
  }

  settle(settlement: Settlement, health: HealthChange | null, done: (hasMoved: boolean) => void): void {
    const item = { settlement, health, done };
    if (health !== null) this.#expectHealth(health);
    // Rows of the endpoint may be locked: a shared batch would have to wait for them.
    if (this.#blocked.countOf(settlement.endpointId) > 0) this.#blocked.add([item]);
    else this.#batcher.add(item);
  }

  get blockedResults(): number {
    return this.#blocked.total;
  }

  countBlocked(endpointId: Uuid): number {
    return this.#blocked.countOf(endpointId);
  }

  async waitUntilIdle(): Promise<void> {
    await this.#batcher.waitUntilIdle();
    await this.#blocked.waitUntilIdle();
  }

  #expectHealth(next: HealthChange): void {
    const before = this.#latestHealth.get(next.endpointId);
    const change = before === undefined ? next : combineHealth(before.change, next);
    this.#latestHealth.set(next.endpointId, { change, pending: (before?.pending ?? 0) + 1 });
  }

  #forgetHealth({ endpointId }: HealthChange): void {
    const { change, pending } = this.#latestHealth.get(endpointId)!;
    if (pending === 1) this.#latestHealth.delete(endpointId);
    else this.#latestHealth.set(endpointId, { change, pending: pending - 1 });
  }

  async #write(batch: readonly PendingResult[]): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await this.#writeOnce(batch);
      } catch (error) {
        this.#options.onProblem('record results', error);
        const failure = settleFailureOf(error);
        if (isBlockedBy(failure)) return this.#blocked.add(batch);
        const parts = SPLITS_ON.has(failure) ? splitBatch(batch) : null;
        if (parts !== null) {
          if (batch.length === 1 && batch[0]!.health !== null) this.#forgetHealth(batch[0]!.health);
          for (const part of parts) await this.#write(part);
          return;
        }
        if (failure === 'other' || failure === 'invalid_row') return this.#setAside(batch);
      }
      await new Promise<void>((resolve) => this.#options.clock.after(pauseMs, resolve));
    }
  }

  #setAside(batch: readonly PendingResult[]): void {
    this.#options.clock.after(SET_ASIDE_MS, () => {
      for (const item of batch) this.#batcher.add(item);
    });
  }

  async #writeOnce(results: readonly PendingResult[], givesUpSoon = false): Promise<void> {
    const { batch, repeated } = takeOnePerDelivery(results);
    // Only the latest state of an endpoint: one statement cannot write the same row twice.
    const health = new Map<Uuid, HealthChange>();
    const endpointNotes: EndpointNote[] = [];
    for (const { health: change } of batch) {
      if (change === null) continue;
      health.set(change.endpointId, this.#latestHealth.get(change.endpointId)!.change);
      if (change.circuitNote !== undefined) endpointNotes.push(change.circuitNote);
      if (change.limitNote !== undefined) endpointNotes.push(change.limitNote);
    }
    const { sink, worker } = this.#options;
    const moved = await sink.settle({
      settlements: batch.map((item) => item.settlement),
      health: [...health.values()],
      endpointNotes,
      worker: { id: worker.workerId, name: worker.workerName },
      givesUpSoon,
    });
    for (const item of batch) this.#finish(item, moved.has(item.settlement.deliveryId));
    for (const item of repeated) this.#batcher.add(item);
    this.#showInLiveTail(batch, moved);
  }

  /** Catches errors, because the result is recorded: an error here must not cause a second try. */
  #finish({ health, done }: PendingResult, hasMoved: boolean): void {
    if (health !== null) this.#forgetHealth(health);
    try {
      done(hasMoved);
    } catch (error) {
      this.#options.onProblem('continue after a result was recorded', error);
    }
  }

  /** Catches errors, because the results are recorded: an error here must not cause a second try. */
  #showInLiveTail(batch: readonly PendingResult[], moved: ReadonlySet<Uuid>): void {
    const { tail, onProblem } = this.#options;
    if (!tail?.isWatched) return;
    try {
      tail.onSettled(
        batch.flatMap(({ settlement }) => (moved.has(settlement.deliveryId) ? [settlement] : [])),
      );
    } catch (error) {
      onProblem('show results in live tails', error);
    }
  }
}

/** True if nothing waits for the record. The next delivery of a FIFO endpoint does, and so do retries and circuits. */
const canWait = (settlement: Settlement, health: HealthChange | null): boolean =>
  settlement.verdict.kind === 'delivered' && !settlement.fifo && health === null;
