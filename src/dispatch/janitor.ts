/**
 * Ends waiting deliveries that will never be sent: those of an endpoint that was switched off or deleted, and those
 * that grew too old while nothing could be sent. In chunks, one endpoint at a time. What it does follows from what
 * is in the database, so it can be cut off at any point and begun again by anybody.
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
  readonly problem: (what: string, error: unknown) => void;
}

const EXPIRE_EVERY_MS = 30_000;
/** By then an accept that began before has been committed, or given up: its statement may take 7 seconds. */
const LATE_COMMIT_MS = 10_000;
const PROBLEMS = {
  skip: 'skip waiting deliveries',
  expire: 'end deliveries that grew too old',
  order: 'put waiting deliveries in order',
} as const;

export class Janitor {
  readonly #options: JanitorOptions;
  readonly #lastExpiry = new WeakMap<Lane, number>();
  /** Since when an endpoint has been off, by the object that says so. */
  readonly #offSince = new WeakMap<Endpoint, number>();
  readonly #orderedSince = new WeakSet<Endpoint>();
  readonly #queued = { skip: new Set<Lane>(), expire: new Set<Lane>(), order: new Set<Lane>() };
  #work: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: JanitorOptions) {
    this.#options = options;
  }

  /**
   * `done` is called for a deleted endpoint once nothing of it is left. An event that was matched just before the
   * endpoint was switched off may be committed just after: it is looked for once more when that cannot be any more.
   */
  skip(lane: Lane, done: () => void): void {
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
        clock.after(waitMs + 1, () => this.#isOff(lane) && this.skip(lane, done));
        return;
      }
      if (!lane.endpoint.deleted || lane.inFlight + lane.unsettled > 0) return;
      this.#options.endpoints.forget(lane.id);
      done();
    });
  }

  /** Only lanes that hold back can have something too old; the others meet it when its turn comes. */
  expire(lane: Lane): void {
    const now = this.#options.clock.monotonic();
    const heldBack =
      !lane.active ||
      !lane.breaker.allowsTraffic ||
      lane.read.moreFresh ||
      lane.holdUntil > this.#options.clock.now();
    if (!heldBack || now - (this.#lastExpiry.get(lane) ?? Number.NEGATIVE_INFINITY) < EXPIRE_EVERY_MS) return;
    this.#lastExpiry.set(lane, now);
    this.#queue(lane, 'expire', async () => {
      const acceptedBefore = this.#options.clock.now() - lane.endpoint.retry.maxAgeSeconds * 1000;
      const blocks = lane.fifo && lane.endpoint.fifoOnDead === 'block';
      const expireSome = () =>
        this.#options.queue.expire(lane.id, acceptedBefore, idsOf(lane.underWay), { blocksLane: blocks });
      while (!lane.closed && (await expireSome()) > 0) if (blocks) lane.blocked = true;
    });
  }

  /**
   * A strictly ordered lane is read by its order alone. What waits since before it was ordered, or was matched before
   * and committed after, is given its place. `done` is called if there was any.
   */
  putInOrder(lane: Lane, done: () => void): void {
    const { endpoint } = lane;
    this.#queue(lane, 'order', async () => {
      let moved = 0;
      for (let some = 1; some > 0 && lane.fifo && !lane.closed; moved += some) {
        some = await this.#options.queue.moveToFifo(lane.id);
      }
      if (moved > 0) done();
      if (this.#orderedSince.has(endpoint)) return;
      this.#orderedSince.add(endpoint);
      this.#options.clock.after(LATE_COMMIT_MS, () => this.putInOrder(lane, done));
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }

  #isOff(lane: Lane): boolean {
    return !this.#stopped && !lane.closed && (!lane.endpoint.enabled || lane.endpoint.deleted);
  }

  #queue(lane: Lane, what: keyof typeof PROBLEMS, task: () => Promise<void>): void {
    const queued = this.#queued[what];
    if (queued.has(lane) || this.#stopped) return;
    queued.add(lane);
    this.#work = this.#work.then(async () => {
      // From here on a request means: once more after this. What it is about may have been committed too late for us.
      queued.delete(lane);
      try {
        if (!this.#stopped && !lane.closed) await task();
      } catch (error) {
        this.#options.problem(PROBLEMS[what], error);
      }
    });
  }
}

const idsOf = (items: readonly LaneItem[]): Uuid[] => items.map(({ delivery }) => delivery.id);
