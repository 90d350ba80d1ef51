/**
 * Ends waiting deliveries that will never be sent: those of a disabled or deleted endpoint, and those that exceeded
 * their maximum age while nothing could be sent. Works in chunks, one endpoint at a time. All state is in the store, so
 * any worker can continue after a crash.
 */
import type { Clock } from '../domain/clock.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { Uuid } from '../domain/ids.ts';
import type { QueueCleaner } from '../ports/delivery-queue.ts';
import type { EndpointDirectory } from '../ports/endpoint-directory.ts';
import type { Lane, LaneItem } from './lane.ts';

export interface JanitorOptions {
  readonly queue: QueueCleaner;
  readonly clock: Clock;
  readonly endpoints: Pick<EndpointDirectory, 'forget'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

const EXPIRE_EVERY_MS = 30_000;
/** An accept that began before a change has committed or failed after this time: its statement may take 7 seconds. */
const LATE_COMMIT_MS = 10_000;
const PROBLEMS = {
  skip: 'skip waiting deliveries',
  expire: 'expire waiting deliveries',
  fifo: 'move waiting deliveries to FIFO',
} as const;

export class Janitor {
  readonly #options: JanitorOptions;
  readonly #lastExpiry = new WeakMap<Lane, number>();
  /** When the janitor first saw this version of the endpoint disabled or deleted. */
  readonly #disabledSince = new WeakMap<Endpoint, number>();
  /** FIFO endpoints for which the second run, for late commits, is scheduled or done. */
  readonly #recheckedFifo = new WeakSet<Endpoint>();
  readonly #queued = { skip: new Set<Lane>(), expire: new Set<Lane>(), fifo: new Set<Lane>() };
  #chain: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: JanitorOptions) {
    this.#options = options;
  }

  /**
   * Skips all waiting deliveries of a disabled or deleted endpoint. For a deleted one, calls `onNoneLeft` at the end.
   * An event that was matched just before the change may be committed just after it, so this runs once more later.
   */
  skip(lane: Lane, onNoneLeft: () => void): void {
    this.#enqueue(lane, 'skip', async () => {
      const { clock } = this.#options;
      const since = this.#disabledSince.get(lane.endpoint) ?? clock.monotonic();
      this.#disabledSince.set(lane.endpoint, since);
      const reason = lane.endpoint.deleted ? 'endpoint_deleted' : 'endpoint_disabled';
      while (
        this.#isDisabled(lane) &&
        (await this.#options.queue.skip(lane.id, reason, idsOf(lane.underWay))) > 0
      );
      if (!this.#isDisabled(lane)) return;
      const waitMs = since + LATE_COMMIT_MS - clock.monotonic();
      if (waitMs > 0) {
        clock.after(waitMs + 1, () => this.#isDisabled(lane) && this.skip(lane, onNoneLeft));
        return;
      }
      if (!lane.endpoint.deleted || !lane.isIdle) return;
      this.#options.endpoints.forget(lane.id);
      onNoneLeft();
    });
  }

  /** Expires deliveries of a lane that cannot send all it has. Other lanes check the age when they send. */
  expire(lane: Lane): void {
    if (this.#options.clock.isSteady === false) return;
    const now = this.#options.clock.monotonic();
    const isHeld =
      !lane.isActive ||
      !lane.breaker.allowsTraffic ||
      lane.readProgress.hasMoreFresh ||
      lane.holdUntil > this.#options.clock.now();
    if (!isHeld || now - (this.#lastExpiry.get(lane) ?? Number.NEGATIVE_INFINITY) < EXPIRE_EVERY_MS) return;
    this.#lastExpiry.set(lane, now);
    this.#enqueue(lane, 'expire', async () => {
      const agedBefore = this.#options.clock.now() - lane.endpoint.retry.maxAgeSeconds * 1000;
      const blocks = lane.isFifo && lane.endpoint.fifoOnDead === 'block';
      const expireChunk = () =>
        this.#options.queue.expire(lane.id, agedBefore, idsOf(lane.underWay), { blocksLane: blocks });
      while (!lane.isClosed && (await expireChunk()) > 0) if (blocks) lane.isBlocked = true;
    });
  }

  /**
   * Marks deliveries that were stored before the endpoint became FIFO: a FIFO lane is loaded by acceptance number alone.
   * Calls `onMoved` if there were any. Runs once more later, for events that were matched before the change.
   */
  moveToFifo(lane: Lane, onMoved: () => void): void {
    const { endpoint } = lane;
    this.#enqueue(lane, 'fifo', async () => {
      let moved = 0;
      for (let movedNow = 1; movedNow > 0 && lane.isFifo && !lane.isClosed; moved += movedNow) {
        movedNow = await this.#options.queue.moveToFifo(lane.id);
      }
      if (moved > 0) onMoved();
      if (this.#recheckedFifo.has(endpoint)) return;
      this.#recheckedFifo.add(endpoint);
      this.#options.clock.after(LATE_COMMIT_MS, () => this.moveToFifo(lane, onMoved));
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#chain;
  }

  /** False also once the janitor has stopped or the worker has lost the lane. */
  #isDisabled(lane: Lane): boolean {
    return !this.#isStopped && !lane.isClosed && (!lane.endpoint.enabled || lane.endpoint.deleted);
  }

  #enqueue(lane: Lane, what: keyof typeof PROBLEMS, task: () => Promise<void>): void {
    const queued = this.#queued[what];
    if (queued.has(lane) || this.#isStopped) return;
    queued.add(lane);
    this.#chain = this.#chain.then(async () => {
      // A call from here on queues another run.
      queued.delete(lane);
      try {
        if (!this.#isStopped && !lane.isClosed) await task();
      } catch (error) {
        this.#options.onProblem(PROBLEMS[what], error);
      }
    });
  }
}

const idsOf = (items: readonly LaneItem[]): Uuid[] => items.map(({ delivery }) => delivery.id);
