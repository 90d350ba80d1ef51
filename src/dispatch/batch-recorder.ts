/**
 * Records the composition of batches before they are sent. Starts that arrive together share a commit. The end of a batch
 * is not urgent, because a batch without waiting deliveries is harmless: it shares the commit of a later start.
 */
import { Batcher } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { BatchLog, BatchStart } from '../ports/batch-log.ts';
import type { Ownership } from './ownership.ts';

export interface BatchRecorderOptions {
  readonly queue: Pick<BatchLog, 'recordBatches'>;
  readonly clock: Pick<Clock, 'after'>;
  readonly ownership: Pick<Ownership, 'workerId'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface Waiting {
  readonly start: BatchStart;
  readonly done: (maySend: boolean) => void;
}

const STARTS_PER_COMMIT = 50;
/** How long the end of a batch waits for a start to share its commit. */
const MAX_END_DELAY_MS = 500;

export class BatchRecorder {
  readonly #options: BatchRecorderOptions;
  readonly #batcher: Batcher<Waiting>;
  #ended = new Set<Uuid>();
  #isFlushScheduled = false;

  constructor(options: BatchRecorderOptions) {
    this.#options = options;
    this.#batcher = new Batcher<Waiting>({
      maxItems: STARTS_PER_COMMIT,
      maxBytes: Number.POSITIVE_INFINITY,
      bytesOf: () => 0,
      write: (batch) => this.#write(batch),
    });
  }

  /** Calls `done` with true if the batch may be sent: its composition is durable and its deliveries have not changed. */
  recordStart(start: BatchStart, done: (maySend: boolean) => void): void {
    this.#batcher.add({ start, done });
  }

  /** Records that no request of this batch is on the wire any more. */
  recordEnd(id: Uuid): void {
    this.#ended.add(id);
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    this.#options.clock.after(MAX_END_DELAY_MS, () => {
      this.#isFlushScheduled = false;
      void this.flush();
    });
  }

  /** Writes the ends that wait for a start. */
  async flush(): Promise<void> {
    if (this.#ended.size > 0) await this.#write([]);
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { queue, ownership, onProblem } = this.#options;
    const starts = [...new Map(batch.map(({ start }) => [start.id, start])).values()];
    // A batch that is sent again must stay open.
    for (const { id } of starts) this.#ended.delete(id);
    const ended = [...this.#ended];
    this.#ended = new Set();
    let allowed: ReadonlySet<Uuid> = new Set();
    try {
      allowed = await queue.recordBatches(starts, ended, ownership.workerId);
    } catch (error) {
      // The outcome is unknown, so nothing is sent. The lane loads the deliveries again.
      onProblem('record batches', error);
      for (const id of [...ended, ...starts.map(({ id }) => id)]) this.recordEnd(id);
    }
    // If two starts have the same id, they must be equal: only the recorded one may be sent.
    for (const { start, done } of batch) done(allowed.has(start.id) && starts.includes(start));
  }
}
