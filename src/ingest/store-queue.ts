/** Writes pending events to the store in shared batches. Tenants with many events, and events that wait for locks, have paths of their own. */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import { type AcceptQueue, bytesOf } from './accept-queue.ts';
import type { BatchWriter } from './batch-writer.ts';
import { BlockedPath } from './blocked-path.ts';
import { BulkPath } from './bulk-path.ts';
import { CommitPace, REQUEST_FACTOR } from './commit-pace.ts';
import type { PendingEvent } from './pending-event.ts';

export interface StoreQueueOptions {
  readonly writer: Pick<BatchWriter, 'write' | 'writeFirst'>;
  readonly clock: Clock;
  /** Called before each batch that is not on the bulk path. */
  readonly onSharedBatch: () => void;
  readonly batchRows: number;
  readonly batchBytes: number;
  /** Called after each batch, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
}

export class StoreQueue implements AcceptQueue {
  readonly isStore = true;
  readonly #batcher: Batcher<PendingEvent>;
  readonly #bulk: BulkPath;
  readonly #blocked: BlockedPath;

  constructor(options: StoreQueueOptions) {
    const { writer, clock, batchRows, batchBytes, onSharedBatch, onBatchWritten } = options;
    const bytesOfItem = ({ event }: PendingEvent): number => bytesOf(event);
    const blocked: BlockedPath = new BlockedPath({
      clock,
      bytesOf: bytesOfItem,
      write: (batch, mayBeStored) => writer.write(batch, { mayBeStored, blocked, hasConflicted: true }),
    });
    const pace = new CommitPace({ clock, factor: REQUEST_FACTOR });
    const widePace = new CommitPace({ clock, factor: REQUEST_FACTOR });
    const bulk = new BulkPath({
      clock,
      pace,
      widePace,
      maxItems: batchRows,
      maxBytes: batchBytes,
      bytesOf: bytesOfItem,
      onWritten: onBatchWritten,
      writeFirst: (batch, onAppended) =>
        writer.writeFirst(batch, { mayBeStored: false, blocked, onAppended }),
    });
    this.#bulk = bulk;
    this.#blocked = blocked;
    this.#batcher = new Batcher<PendingEvent>({
      maxItems: batchRows,
      maxBytes: batchBytes,
      bytesOf: bytesOfItem,
      divert: (batch) => bulk.divert(batch),
      write: (batch) => {
        pace.onSharedBatch();
        widePace.onSharedBatch();
        onSharedBatch();
        return writer.write(batch, { mayBeStored: false, bulk, blocked });
      },
      onWritten: onBatchWritten,
    });
  }

  get waitedMs(): number {
    return this.#batcher.waitedMs;
  }

  add(item: PendingEvent): void {
    this.#batcher.add(item);
  }

  async waitUntilIdle(): Promise<void> {
    await this.#batcher.waitUntilIdle();
    await this.#bulk.waitUntilIdle();
    await this.#blocked.waitUntilIdle();
  }
}
