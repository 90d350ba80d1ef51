/**
 * Records the start of a request before it is sent, for requests that must not be sent twice at the same time: FIFO
 * heads, probes, suspected poison. Starts that arrive together share a commit. If another transaction holds a lock on the
 * row of one of them, the batch is halved until the others are recorded.
 */
import { Batcher } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Start, StartRecorder } from '../ports/delivery-queue.ts';
import { storeFailureOf } from '../ports/store-error.ts';
import type { Ownership } from './ownership.ts';

export interface StartLogOptions {
  readonly queue: Pick<StartRecorder, 'markStarted'>;
  readonly clock: Clock;
  readonly ownership: Pick<Ownership, 'workerId'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface Waiting {
  readonly start: Start;
  readonly done: (maySend: boolean) => void;
}

const BATCH_STARTS = 200;
/** How long the lane of a locked delivery waits before it is read again. */
const LOCKED_PAUSE_MS = 1_000;
/** For this long after its last try, a locked delivery counts as locked: the next try does not wait for the lock. */
const LOCKED_MEMORY_MS = 5_000;

export class StartLog {
  readonly #options: StartLogOptions;
  readonly #batcher: Batcher<Waiting>;
  /** Deliveries whose rows were locked recently, and until when they count as locked. */
  readonly #locked = new Map<Uuid, number>();

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
    this.#forgetLocked();
    if (this.#locked.size === 0) return this.#writePart(batch, false);
    // Make both lists before the first write, which may find more locked deliveries.
    const free = batch.filter(({ start }) => !this.#locked.has(start.deliveryId));
    const locked = batch.filter(({ start }) => this.#locked.has(start.deliveryId));
    if (free.length > 0) await this.#writePart(free, false);
    if (locked.length > 0) await this.#writePart(locked, true);
  }

  async #writePart(part: readonly Waiting[], givesUpSoon: boolean): Promise<void> {
    const { queue, ownership, onProblem } = this.#options;
    let marked: ReadonlySet<Uuid> = new Set();
    try {
      const starts = part.map(({ start }) => start);
      marked = await queue.markStarted(starts, ownership.workerId, { givesUpSoon });
    } catch (error) {
      if (storeFailureOf(error) === 'conflict') return this.#divide(part, error);
      // The outcome is unknown, so nothing is sent. The lane loads the deliveries again, with the recorded starts.
      onProblem('record the start of requests', error);
    }
    for (const { start, done } of part) done(marked.has(start.deliveryId));
  }

  async #divide(part: readonly Waiting[], error: unknown): Promise<void> {
    if (part.length === 1) return this.#pause(part[0]!, error);
    const middle = part.length >> 1;
    await this.#writePart(part.slice(0, middle), true);
    await this.#writePart(part.slice(middle), true);
  }

  /** Nothing was recorded. The lane loads the delivery again after a pause. */
  #pause({ start, done }: Waiting, error: unknown): void {
    const { clock, onProblem } = this.#options;
    onProblem('record the start of a request, because another transaction has locked its row', error);
    this.#locked.set(start.deliveryId, clock.monotonic() + LOCKED_MEMORY_MS);
    clock.after(LOCKED_PAUSE_MS, () => done(false));
  }

  #forgetLocked(): void {
    const now = this.#options.clock.monotonic();
    for (const [id, until] of this.#locked) if (until < now) this.#locked.delete(id);
  }
}
