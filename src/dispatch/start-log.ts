/**
 * Records the start of a request before it is sent, for requests that must not be sent twice at the same time: FIFO
 * heads, probes, suspected poison. Starts that arrive together share a commit.
 */
import { Batcher } from '../domain/batcher.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Start, StartRecorder } from '../ports/delivery-queue.ts';
import type { Ownership } from './ownership.ts';

export interface StartLogOptions {
  readonly queue: Pick<StartRecorder, 'markStarted'>;
  readonly ownership: Pick<Ownership, 'workerId'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface Waiting {
  readonly start: Start;
  readonly done: (maySend: boolean) => void;
}

const BATCH_STARTS = 200;

export class StartLog {
  readonly #options: StartLogOptions;
  readonly #batcher: Batcher<Waiting>;

  constructor(options: StartLogOptions) {
    this.#options = options;
    this.#batcher = new Batcher<Waiting>({
      maxItems: BATCH_STARTS,
      maxBytes: Number.POSITIVE_INFINITY,
      bytesOf: () => 0,
      write: (batch) => this.#write(batch),
    });
  }

  /** Calls `done` with true if the delivery may be sent: its start is durable, and it has not changed in the store. */
  record(start: Start, done: (maySend: boolean) => void): void {
    this.#batcher.add({ start, done });
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { queue, ownership, onProblem } = this.#options;
    let marked: ReadonlySet<Uuid> = new Set();
    try {
      marked = await queue.markStarted(
        batch.map(({ start }) => start),
        ownership.workerId,
      );
    } catch (error) {
      // The outcome is unknown, so nothing is sent. The lane loads the deliveries again, with the recorded starts.
      onProblem('record the start of requests', error);
    }
    for (const { start, done } of batch) done(marked.has(start.deliveryId));
  }
}
