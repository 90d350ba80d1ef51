/**
 * Ends waiting deliveries that will never be sent: those of a disabled or deleted endpoint, and those that exceeded
 * their maximum age while nothing could be sent. Works in chunks, one endpoint at a time. Everything follows from what
 * the store has, so any worker can continue after a crash.
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
/** After this time an accept that began before is committed or given up: its statement may take 7 seconds. */
const LATE_COMMIT_MS = 10_000;
const PROBLEMS = {
  skip: 'skip waiting deliveries',
  expire: 'expire waiting deliveries',
  fifo: 'move waiting deliveries to FIFO',
} as const;

export class Janitor {
  readonly #options: JanitorOptions;
  readonly #lastExpiry = new WeakMap<Lane, number>();
  /** Since when an endpoint has been disabled or deleted, by this version of it. */
  readonly #offSince = new WeakMap<Endpoint, number>();
  /** FIFO endpoints whose late commits will be looked for, or have been. */
  readonly #isRepeated = new WeakSet<Endpoint>();
  readonly #queued = { skip: new Set<Lane>(), expire: new Set<Lane>(), fifo: new Set<Lane>() };
  #work: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: JanitorOptions) {
    this.#options = options;
  }

  /**
   * Skips all waiting deliveries of a disabled or deleted endpoint. Calls `onGone` for a deleted one when none is left.
   * An event that was matched just before the change may be committed just after it, so this runs once more later.
   */
  skip(lane: Lane, onGone: () => void): void {
    this.#queue(lane, 'skip', async () => {
      const { clock } = this.#options;
      const since = this.#offSince.get(lane.endpoint) ?? clock.monotonic();
      this.#offSince.set(lane.endpoint, since);
      const reason = lane.endpoint.deleted ? 'endpoint_deleted' : 'endpoint_disabled';
      while (
        this.#isOff(lane) &&
        (await this.#options.queue.skip(lane.id, reason, idsOf(lane.underWay))) > 0
      );
      if (!this.#isOff(lane)) return;
      const waitMs = since + LATE_COMMIT_MS - clock.monotonic();
      if (waitMs > 0) {
        clock.after(waitMs + 1, () => this.#isOff(lane) && this.skip(lane, onGone));
        return;
      }
      if (!lane.endpoint.deleted || !lane.isIdle) return;
      this.#options.endpoints.forget(lane.id);
      onGone();
    });
  }

  /** Expires deliveries of a lane that cannot send all it has. Other lanes check the age when they send. */
  expire(lane: Lane): void {
    const now = this.#options.clock.monotonic();
    const isHeld =
      !lane.isActive ||
      !lane.breaker.allowsTraffic ||
      lane.read.moreFresh ||
      lane.holdUntil > this.#options.clock.now();
    if (!isHeld || now - (this.#lastExpiry.get(lane) ?? Number.NEGATIVE_INFINITY) < EXPIRE_EVERY_MS) return;
    this.#lastExpiry.set(lane, now);
    this.#queue(lane, 'expire', async () => {
      const agedBefore = this.#options.clock.now() - lane.endpoint.retry.maxAgeSeconds * 1000;
      const blocks = lane.fifo && lane.endpoint.fifoOnDead === 'block';
      const expireSome = () =>
        this.#options.queue.expire(lane.id, agedBefore, idsOf(lane.underWay), { blocksLane: blocks });
      while (!lane.isClosed && (await expireSome()) > 0) if (blocks) lane.blocked = true;
    });
  }

  /**
   * Marks deliveries that were stored before the endpoint became FIFO: a FIFO lane is loaded by acceptance number alone.
   * Calls `onMoved` if there were any. Runs once more later, for events that were matched before the change.
   */
  moveToFifo(lane: Lane, onMoved: () => void): void {
    const { endpoint } = lane;
    this.#queue(lane, 'fifo', async () => {
      let moved = 0;
      for (let some = 1; some > 0 && lane.fifo && !lane.isClosed; moved += some) {
        some = await this.#options.queue.moveToFifo(lane.id);
      }
      if (moved > 0) onMoved();
      if (this.#isRepeated.has(endpoint)) return;
      this.#isRepeated.add(endpoint);
      this.#options.clock.after(LATE_COMMIT_MS, () => this.moveToFifo(lane, onMoved));
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }

  #isOff(lane: Lane): boolean {
    return !this.#stopped && !lane.isClosed && (!lane.endpoint.enabled || lane.endpoint.deleted);
  }

  #queue(lane: Lane, what: keyof typeof PROBLEMS, task: () => Promise<void>): void {
    const queued = this.#queued[what];
    if (queued.has(lane) || this.#stopped) return;
    queued.add(lane);
    this.#work = this.#work.then(async () => {
      // A request from here on means: once more afterwards.
      queued.delete(lane);
      try {
        if (!this.#stopped && !lane.isClosed) await task();
      } catch (error) {
        this.#options.onProblem(PROBLEMS[what], error);
      }
    });
  }
}

const idsOf = (items: readonly LaneItem[]): Uuid[] => items.map(({ delivery }) => delivery.id);
