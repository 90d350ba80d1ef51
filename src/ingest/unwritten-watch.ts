/**
 * Applies the limit of unwritten deliveries to events that go through the log (`POSTHORN_BACKBONE=kafka`). The events are stored
 * later, and accepting must not wait for the store. So the tenants with large fan-outs are counted beside the requests, and a tenant
 * may exceed the limit by what it publishes until its events are stored and counted.
 */
import type { Clock } from '../domain/clock.ts';
import type { Problem } from '../domain/problem.ts';
import type { FanOutStore } from '../ports/fan-out-store.ts';
import { tooManyUnwritten } from './store-problems.ts';

export interface UnwrittenWatchOptions {
  readonly fanOuts: Pick<FanOutStore, 'countSlices'>;
  readonly clock: Clock;
  readonly deliveriesPerCommit: number;
  /** Deliveries per slice. */
  readonly sliceRows: number;
  readonly maxUnwritten: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** A tenant that publishes large fan-outs is counted once in this time. */
const COUNT_EVERY_MS = 500;
/** A tenant that has published none for this time is forgotten. */
const FORGET_AFTER_MS = 60_000;

interface WatchedTenant {
  isFull: boolean;
  countedAt: number;
}

export class UnwrittenWatch {
  readonly #options: UnwrittenWatchOptions;
  readonly #tenants = new Map<string, WatchedTenant>();

  constructor(options: UnwrittenWatchOptions) {
    this.#options = options;
  }

  /** Returns the answer to an event of this size if its tenant has reached the limit. Null: it may be accepted. */
  findProblem(tenant: string, deliveries: number): Problem | null {
    const { deliveriesPerCommit, maxUnwritten, clock } = this.#options;
    if (deliveries <= deliveriesPerCommit) return null;
    const now = clock.monotonic();
    const watched = this.#tenants.get(tenant) ?? { isFull: false, countedAt: Number.NEGATIVE_INFINITY };
    // A problem that is as old as this says nothing about now.
    const isFull = watched.isFull && now - watched.countedAt < FORGET_AFTER_MS;
    if (now - watched.countedAt >= COUNT_EVERY_MS) {
      watched.countedAt = now;
      this.#forgetOld(now);
      this.#tenants.set(tenant, watched);
      void this.#count(tenant, watched);
    }
    return isFull ? tooManyUnwritten(tenant, maxUnwritten) : null;
  }

  #forgetOld(now: number): void {
    for (const [tenant, { countedAt }] of this.#tenants)
      if (now - countedAt >= FORGET_AFTER_MS) this.#tenants.delete(tenant);
  }

  /** While the store does not answer, nothing is refused. */
  async #count(tenant: string, watched: WatchedTenant): Promise<void> {
    const { fanOuts, sliceRows, maxUnwritten, onProblem } = this.#options;
    const maxSlices = Math.ceil(maxUnwritten / sliceRows);
    try {
      watched.isFull = (await fanOuts.countSlices(tenant, maxSlices)) >= maxSlices;
    } catch (error) {
      watched.isFull = false;
      onProblem('count unwritten deliveries', error);
    }
  }
}
