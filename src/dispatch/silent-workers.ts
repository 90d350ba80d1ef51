/**
 * Finds workers that have stopped renewing their leases. A lease has ended if this process has seen the same renewal for longer
 * than the lease lasts, by its own monotonic clock. The times in the store prove nothing: while its clock is wrong for a
 * moment, a renewal gets a wrong time, and a worker that did not renew in that moment does not notice.
 */
import type { Uuid } from '../domain/ids.ts';
import type { OtherWorker, SilentWorker } from '../ports/ownership-store.ts';

/** Clocks of two machines may run at different rates. */
const LEASE_MARGIN = 1.1;

export interface SilentWorkersOptions {
  readonly leaseMs: number;
  /** After this time without a renewal a worker is dead, even if its session is alive. */
  readonly deadAfterMs: number;
}

export class SilentWorkers {
  readonly #options: SilentWorkersOptions;
  #seen: ReadonlyMap<Uuid, { readonly renewal: string; readonly since: number }> | null = null;

  constructor(options: SilentWorkersOptions) {
    this.#options = options;
  }

  /**
   * Returns the workers whose leases have ended. `now` is the monotonic time at which the answer with `others`
   * arrived. `trustsStore`: believe the store that a lease has ended. A process that has just started has observed no
   * renewals yet, and a restart after a crash must not wait for them. Only observation
   * decides that a worker with a session is dead.
   */
  observe(others: readonly OtherWorker[], now: number, trustsStore: boolean): SilentWorker[] {
    const { leaseMs, deadAfterMs } = this.#options;
    const endsAfterMs = leaseMs * LEASE_MARGIN;
    const before = this.#seen;
    const seen = new Map<Uuid, { renewal: string; since: number }>();
    const silent: SilentWorker[] = [];
    for (const { id, renewal, silentMs } of others) {
      const known = before?.get(id);
      const believedMs = before === null && trustsStore ? Math.min(Math.max(0, silentMs), endsAfterMs) : 0;
      const since = known?.renewal === renewal ? known.since : now - believedMs;
      seen.set(id, { renewal, since });
      if (now - since >= endsAfterMs) silent.push({ id, renewal, isOverdue: now - since >= deadAfterMs });
    }
    this.#seen = seen;
    return silent;
  }
}
