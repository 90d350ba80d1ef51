/**
 * Ends waiting deliveries that will never be sent: those of an endpoint that was switched off or deleted, and those
 * that grew too old while nothing could be sent. In chunks, one endpoint at a time. What it does follows from what
 * is in the database, so it can be cut off at any point and begun again by anybody.
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Pool } from '../store/database.ts';
import type { EndpointCache } from '../store/endpoint-cache.ts';
import { expireWaiting, skipWaiting } from '../store/queries/end-waiting.ts';
import type { Lane, LaneItem } from './lane.ts';

export interface JanitorOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly endpoints: EndpointCache;
  readonly problem: (what: string, error: unknown) => void;
}

const EXPIRE_EVERY_MS = 30_000;
const PROBLEMS = { skip: 'skip waiting deliveries', expire: 'end deliveries that grew too old' } as const;

export class Janitor {
  readonly #options: JanitorOptions;
  readonly #lastExpiry = new WeakMap<Lane, number>();
  readonly #queued = { skip: new Set<Lane>(), expire: new Set<Lane>() };
  #work: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: JanitorOptions) {
    this.#options = options;
  }

  /** `done` is called for a deleted endpoint once nothing of it is left. */
  skip(lane: Lane, done: () => void): void {
    this.#queue(lane, 'skip', async () => {
      const reason = lane.endpoint.deleted ? 'endpoint_deleted' : 'endpoint_disabled';
      while (
        this.#isOff(lane) &&
        (await skipWaiting(this.#options.pool, lane.id, reason, idsOf(lane.underWay))) > 0
      );
      if (!this.#isOff(lane) || !lane.endpoint.deleted || lane.inFlight + lane.unsettled > 0) return;
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
      lane.moreFresh ||
      lane.holdUntil > this.#options.clock.now();
    if (!heldBack || now - (this.#lastExpiry.get(lane) ?? Number.NEGATIVE_INFINITY) < EXPIRE_EVERY_MS) return;
    this.#lastExpiry.set(lane, now);
    this.#queue(lane, 'expire', async () => {
      const acceptedBefore = this.#options.clock.now() - lane.endpoint.retry.maxAgeSeconds * 1000;
      while (
        !lane.closed &&
        (await expireWaiting(this.#options.pool, lane.id, acceptedBefore, idsOf(lane.underWay))) > 0
      );
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
