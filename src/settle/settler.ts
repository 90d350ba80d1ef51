/**
 * Outcomes are gathered like accepts are and written by one statement. An outcome is never given up: until it is
 * written the delivery could be sent again. What the database refuses because of one value is written in halves,
 * and the culprit with a minimal record of what happened.
 */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { CircuitNote } from '../domain/operational.ts';
import type { HealthChange, Settlement, SettlementSink } from '../ports/delivery-queue.ts';
import { storeFailureOf } from '../ports/store-error.ts';

export interface SettlerOptions {
  readonly sink: SettlementSink;
  readonly clock: Clock;
  readonly batchRows: number;
  readonly worker: () => { id: Uuid; name: string };
  readonly failed: (error: unknown, items: number) => void;
  /** Told of what was moved on, while somebody watches. */
  readonly tail?: { readonly open: boolean; settled(settlements: readonly Settlement[]): void };
  readonly written?: BatcherOptions<unknown>['written'];
}

interface Waiting {
  readonly settlement: Settlement;
  readonly health: HealthChange | null;
  /** Called once it is durable. `moved` is false if somebody else had moved the delivery on. */
  readonly done: (moved: boolean) => void;
  /** Stripped of everything foreign already. */
  readonly minimal?: true;
}

const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const FIRST_PAUSE_MS = 50;
/** What is not written when its worker dies is sent again: the database is back for no longer than this unnoticed. */
const LONGEST_PAUSE_MS = 300;

export class Settler {
  readonly #options: SettlerOptions;
  readonly #batcher: Batcher<Waiting>;

  constructor(options: SettlerOptions) {
    this.#options = options;
    this.#batcher = new Batcher<Waiting>({
      maxItems: options.batchRows,
      maxBytes: MAX_BATCH_BYTES,
      bytesOf: ({ settlement }) => 1024 + (settlement.attempt?.outcome.responseBody?.length ?? 0),
      write: (batch) => this.#write(batch),
      written: options.written,
    });
  }

  settle(settlement: Settlement, health: HealthChange | null, done: (moved: boolean) => void): void {
    this.#batcher.add({ settlement, health, done });
  }

  drained(): Promise<void> {
    return this.#batcher.drained();
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await this.#writeOnce(batch);
      } catch (error) {
        this.#options.failed(error, batch.length);
        const smaller = storeFailureOf(error) === 'invalid_row' ? inSmallerParts(batch) : null;
        if (smaller !== null) {
          for (const part of smaller) await this.#write(part);
          return;
        }
      }
      await new Promise<void>((resolve) => this.#options.clock.after(pauseMs, resolve));
    }
  }

  async #writeOnce(batch: readonly Waiting[]): Promise<void> {
    const health = new Map<Uuid, HealthChange>();
    // The last word about an endpoint counts: the same row cannot be written twice by one statement.
    const circuits: CircuitNote[] = [];
    for (const { health: change } of batch) {
      if (change === null) continue;
      health.set(change.endpointId, change);
      if (change.circuitNote !== undefined) circuits.push(change.circuitNote);
    }
    const moved = await this.#options.sink.settle({
      settlements: batch.map((item) => item.settlement),
      health: [...health.values()],
      circuitNotes: circuits,
      worker: this.#options.worker(),
    });
    for (const item of batch) item.done(moved.has(item.settlement.deliveryId));
    this.#tell(batch, moved);
  }

  /** It is written: whatever becomes of this, it must not be taken for a failure to write. */
  #tell(batch: readonly Waiting[], moved: ReadonlySet<Uuid>): void {
    const { tail, failed } = this.#options;
    if (!tail?.open) return;
    try {
      tail.settled(batch.flatMap(({ settlement }) => (moved.has(settlement.deliveryId) ? [settlement] : [])));
    } catch (error) {
      failed(error, 0);
    }
  }
}

/** Halves, then single ones, then a single one without anything foreign; null: it cannot be made any smaller. */
function inSmallerParts(batch: readonly Waiting[]): readonly (readonly Waiting[])[] | null {
  if (batch.length === 1) return batch[0]!.minimal ? null : [[minimal(batch[0]!)]];
  const middle = batch.length >> 1;
  return [batch.slice(0, middle), batch.slice(middle)];
}

/** What is certainly storable of an outcome: our own words and numbers, nothing of the receiver's. */
function minimal(item: Waiting): Waiting {
  const { attempt } = item.settlement;
  if (attempt === null) return { ...item, health: null, minimal: true };
  const { outcome } = attempt;
  return {
    ...item,
    minimal: true,
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
