/**
 * Deleted endpoints that a process still has in memory. The worker that owns an endpoint forgets it when its deliveries have
 * ended. Other processes do not see that, so they query the database once in a while. Otherwise a tenant that keeps creating and
 * deleting endpoints would fill their memory.
 */
import type { Uuid } from '../domain/ids.ts';
import type { Pool } from './database.ts';
import { withStoreErrors } from './store-error.ts';

/** After this many more deleted endpoints, the process queries the database again. */
const STEP = 1_000;
/** An event that was matched just before the deletion may be committed after it. */
const LATE_COMMITS = "interval '1 minute'";
// An endpoint is missing from its table if the data of its tenant was deleted.
const WITHOUT_DELIVERIES = {
  name: 'deleted_endpoints_without_deliveries',
  text: `
    select t.id from unnest($1::uuid[]) as t(id) left join posthorn.endpoints e on e.id = t.id
     where (e.id is null or e.deleted_at < now() - ${LATE_COMMITS})
       and not exists (select from posthorn.queue q where q.endpoint_id = t.id)`,
};

export class DeletedEndpoints {
  readonly #pool: Pool;
  /** In the order in which they were deleted. */
  readonly #ids = new Set<Uuid>();
  #nextQueryAtSize = STEP;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  add(id: Uuid): void {
    this.#ids.add(id);
  }

  remove(id: Uuid): void {
    this.#ids.delete(id);
  }

  /** Removes and returns endpoints that have no deliveries left. Returns none while there are few deleted endpoints. */
  async takeIdle(): Promise<Uuid[]> {
    if (this.#ids.size < this.#nextQueryAtSize) return [];
    const ids = [...this.#ids].slice(0, 2 * STEP);
    const { rows } = await withStoreErrors(
      this.#pool.query<{ id: Uuid }>({ ...WITHOUT_DELIVERIES, values: [ids] }),
    );
    const idle = rows.map(({ id }) => id);
    // Move the endpoints that stay to the end, so that the next call checks the others first.
    for (const id of ids) this.#ids.delete(id);
    const isIdle = new Set(idle);
    for (const id of ids) if (!isIdle.has(id)) this.#ids.add(id);
    this.#nextQueryAtSize = idle.length > 0 ? Math.max(STEP, this.#ids.size) : this.#ids.size + STEP;
    return idle;
  }
}
