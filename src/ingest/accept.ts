/** Accepts events from requests: admits them, collects them into batches, and resolves after the commit. */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import type { Admission } from './admission.ts';
import type { BatchWriter } from './batch-writer.ts';
import { type Accepted, fingerprintOf, type PendingEvent } from './pending-event.ts';

export interface AcceptorOptions {
  readonly admission: Admission;
  readonly writer: Pick<BatchWriter, 'write'>;
  readonly clock: Clock;
  readonly batchRows: number;
  readonly batchBytes: number;
  /** Called after each batch, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
}

/** Memory that a pending event takes besides its payload. */
const EVENT_OVERHEAD_BYTES = 256;

export class Acceptor {
  readonly #admission: Admission;
  readonly #clock: Clock;
  readonly #batcher: Batcher<PendingEvent>;

  constructor({ admission, writer, clock, batchRows, batchBytes, onBatchWritten }: AcceptorOptions) {
    this.#admission = admission;
    this.#clock = clock;
    this.#batcher = new Batcher<PendingEvent>({
      maxItems: batchRows,
      maxBytes: batchBytes,
      bytesOf: (item) => item.event.data.length + EVENT_OVERHEAD_BYTES,
      write: (batch) => writer.write(batch, { mayBeStored: false }),
      onWritten: onBatchWritten,
    });
  }

  get waitingEvents(): number {
    return this.#batcher.waitingItems;
  }

  /** Resolves when the event and its deliveries are durable. Throws a `Problem` if the event is rejected. */
  async accept(event: NewEvent): Promise<Accepted> {
    this.#admission.checkLoad(event, this.#batcher);
    if (event.endpointIds !== null) await this.#admission.checkTargets(event);
    const id = newEventId(this.#clock.now());
    const fingerprint = fingerprintOf(event);
    return new Promise((resolve, reject) => {
      this.#batcher.add({
        event,
        id,
        fingerprint,
        receivedAt: this.#clock.monotonic(),
        committed: null,
        resolve,
        reject,
      });
    });
  }

  /** Resolves when every admitted event has been answered. */
  waitUntilIdle(): Promise<void> {
    return this.#batcher.waitUntilIdle();
  }
}
