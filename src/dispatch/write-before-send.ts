/**
 * Where two at once may never be (heads of FIFO lanes, probes, careful mode) a request is written down before it
 * leaves. Like everything else these writes share commits.
 */
import { Batcher } from '../domain/batcher.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Start, StartRecorder } from '../ports/delivery-queue.ts';

interface Waiting {
  readonly start: Start;
  readonly done: (mayLeave: boolean) => void;
}

export class WriteBeforeSend {
  readonly #batcher: Batcher<Waiting>;

  constructor(options: { queue: StartRecorder; workerId: () => Uuid; failed: (error: unknown) => void }) {
    this.#batcher = new Batcher<Waiting>({
      maxItems: 200,
      maxBytes: Number.POSITIVE_INFINITY,
      bytesOf: () => 0,
      write: async (batch) => {
        let marked = new Set<Uuid>();
        try {
          marked = await options.queue.markStarted(
            batch.map(({ start }) => start),
            options.workerId(),
          );
        } catch (error) {
          // Not known whether it was written: then it does not leave. It is read again, with whatever was written.
          options.failed(error);
        }
        for (const { start, done } of batch) done(marked.has(start.deliveryId));
      },
    });
  }

  mark(start: Start, done: (mayLeave: boolean) => void): void {
    this.#batcher.add({ start, done });
  }
}
