/**
 * Records the results of attempts. Results that arrive while a commit runs share the next commit. The result of a success
 * that nothing depends on waits a few milliseconds for others first: alone, it would cost as much as ten. The settler never gives
 * a result up, because a delivery without a recorded result is sent again. If the store refuses a batch, the settler
 * bisects it and records the result that causes the error without any data of the receiver. A result that the store
 * refuses all the same is set aside and tried again later, so that the others do not wait for it.
 */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { CircuitNote } from '../domain/operational.ts';
import type { HealthChange, Settlement, SettlementSink } from '../ports/delivery-queue.ts';
import type { ResultRecorder } from '../ports/stages.ts';
import { StoreError, type StoreFailure } from '../ports/store-error.ts';

export interface SettlerOptions {
  readonly sink: SettlementSink;
  readonly clock: Clock;
  readonly batchRows: number;
  /** How long the result of a success waits for others, so that they share a commit. 0: it does not wait. */
  readonly lingerMs: number;
  readonly worker: { readonly workerId: Uuid; readonly workerName: string };
  /** The live tail, which shows settlements that moved their delivery. `open` is true while someone watches. */
  readonly tail?: { readonly open: boolean; settled(settlements: readonly Settlement[]): void } | undefined;
  /** Called after each batch, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
  readonly onProblem: (what: string, error: unknown) => void;
}

interface PendingResult {
  readonly settlement: Settlement;
  readonly health: HealthChange | null;
  /** Called when the result is durable. `moved` is false if someone else moved the delivery. */
  readonly done: (moved: boolean) => void;
  /** True if all data of the receiver has been removed. */
  readonly isMinimal?: true;
}

const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const FIRST_PAUSE_MS = 50;
/** Retry cap: recovery is noticed within 300 ms. If the worker dies before, unrecorded deliveries are sent again. */
const LONGEST_PAUSE_MS = 300;
/** How long a result that the store refuses by itself is set aside. */
const SET_ASIDE_MS = 30_000;
/** Failures that a smaller batch may avoid. After the others the same batch is repeated until the store recovers. */
const SPLITS_ON: ReadonlySet<StoreFailure> = new Set(['invalid_row', 'timeout', 'other']);

export class Settler implements ResultRecorder {
  readonly #options: SettlerOptions;
  readonly #batcher: Batcher<PendingResult>;

  constructor(options: SettlerOptions) {
    this.#options = options;
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

  settle(settlement: Settlement, health: HealthChange | null, done: (moved: boolean) => void): void {
    this.#batcher.add({ settlement, health, done });
  }

  waitUntilIdle(): Promise<void> {
    return this.#batcher.waitUntilIdle();
  }

  async #write(batch: readonly PendingResult[]): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await this.#writeOnce(batch);
      } catch (error) {
        this.#options.onProblem('record results', error);
        // Any error that is not the store's is a bug, and would happen again.
        const failure = error instanceof StoreError ? error.failure : 'other';
        const parts = SPLITS_ON.has(failure) ? splitBatch(batch) : null;
        if (parts !== null) {
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

  async #writeOnce(batch: readonly PendingResult[]): Promise<void> {
    // Only the latest state of an endpoint: one statement cannot write the same row twice.
    const health = new Map<Uuid, HealthChange>();
    const circuitNotes: CircuitNote[] = [];
    for (const { health: change } of batch) {
      if (change === null) continue;
      const before = health.get(change.endpointId)?.holdUntil ?? 0;
      const isHeld = before > (change.holdUntil ?? 0);
      health.set(change.endpointId, isHeld ? { ...change, holdUntil: before } : change);
      if (change.circuitNote !== undefined) circuitNotes.push(change.circuitNote);
    }
    const { sink, worker } = this.#options;
    const moved = await sink.settle({
      settlements: batch.map((item) => item.settlement),
      health: [...health.values()],
      circuitNotes,
      worker: { id: worker.workerId, name: worker.workerName },
    });
    for (const item of batch) this.#finish(item, moved.has(item.settlement.deliveryId));
    this.#showInLiveTail(batch, moved);
  }

  /** Catches errors, because the result is recorded: an error here must not cause a second try. */
  #finish({ done }: PendingResult, hasMoved: boolean): void {
    try {
      done(hasMoved);
    } catch (error) {
      this.#options.onProblem('go on after a recorded result', error);
    }
  }

  /** Catches errors, because the results are recorded: an error here must not cause a second try. */
  #showInLiveTail(batch: readonly PendingResult[], moved: ReadonlySet<Uuid>): void {
    const { tail, onProblem } = this.#options;
    if (!tail?.open) return;
    try {
      tail.settled(batch.flatMap(({ settlement }) => (moved.has(settlement.deliveryId) ? [settlement] : [])));
    } catch (error) {
      onProblem('show results in live tails', error);
    }
  }
}

/** True if nothing depends on the record: the next delivery of a FIFO endpoint waits for it, and so do retries and circuits. */
const canWait = (settlement: Settlement, health: HealthChange | null): boolean =>
  settlement.verdict.kind === 'delivered' && !settlement.fifo && health === null;

/** Returns two halves, or a single result without data of the receiver. Null: the batch cannot be made smaller. */
function splitBatch(batch: readonly PendingResult[]): readonly (readonly PendingResult[])[] | null {
  if (batch.length === 1) return batch[0]!.isMinimal ? null : [[withoutReceiverData(batch[0]!)]];
  const middle = batch.length >> 1;
  return [batch.slice(0, middle), batch.slice(middle)];
}

/** Removes all data of the receiver. The rest of a result can always be stored. */
function withoutReceiverData(item: PendingResult): PendingResult {
  const { attempt } = item.settlement;
  if (attempt === null) return { ...item, health: null, isMinimal: true };
  const { outcome } = attempt;
  return {
    ...item,
    isMinimal: true,
    health: null,
    settlement: {
      ...item.settlement,
      attempt: {
        ...attempt,
        outcome: {
          ...outcome,
          error: outcome.error && { class: outcome.error.class, message: 'The details could not be stored.' },
          responseHeaders: null,
          responseBody: null,
          responseTruncated: true,
          requestHeaders: {},
        },
      },
    },
  };
}
