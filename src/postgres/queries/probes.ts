import type { Uuid } from '../../domain/ids.ts';
import type { Queryable } from '../database.ts';

/**
 * How many of the oldest deliveries are examined. If all of them are scheduled for later, the first fresh or due one is
 * chosen, which may not be the oldest.
 */
const EXAMINED = 1_000;

/**
 * Marks the oldest waiting delivery of an endpoint as a probe. Returns null if nothing waits, or if an earlier probe of
 * this endpoint was not attempted yet. Throws a unique violation if two callers choose different deliveries at once.
 */
export async function markProbe(client: Queryable, endpointId: Uuid): Promise<Uuid | null> {
  const { rows } = await client.query<{ id: Uuid }>(
    `update posthorn.queue q set probe_after_attempts = q.attempts
      where q.id = (
        select id from (
          (select id, seq, fifo from posthorn.queue
            where endpoint_id = $1 and (due_at is null or fifo) order by seq limit 1)
          union all
          (select id, seq, fifo from posthorn.queue
            where endpoint_id = $1 and due_at is not null and not fifo and due_at <= now() order by due_at limit 1)
          union all
          (select id, seq, fifo from (
             select id, seq, fifo, due_at, attempts from posthorn.queue
              where endpoint_id = $1 and not fifo order by id limit ${EXAMINED}) as oldest
            where due_at is null or due_at <= now() or attempts > 0 limit 1)
        ) as candidate
        order by fifo desc, case when fifo then seq end, id limit 1)
        and q.probe_after_attempts is distinct from q.attempts
        and not exists (select from posthorn.queue p
                         where p.endpoint_id = $1 and p.probe_after_attempts = p.attempts and p.id <> q.id)
     returning q.id`,
    [endpointId],
  );
  return rows[0]?.id ?? null;
}

/** What decides whether an endpoint can be probed. */
export interface ProbeState {
  readonly tenant: string;
  readonly enabled: boolean;
  readonly paused: boolean;
  readonly deleted: boolean;
  /** True if a dead letter blocks the FIFO lane. */
  readonly blocked: boolean;
  /** True if a probe is on the wire, or was requested and not attempted yet. */
  readonly probing: boolean;
}

/** Keeps the endpoint from changing until the transaction ends. Null: it does not exist, or belongs to another tenant. */
export async function readProbeState(
  client: Queryable,
  endpointId: Uuid,
  tenant: string | null,
): Promise<ProbeState | null> {
  const { rows } = await client.query<ProbeState>(
    `select e.tenant, e.enabled, e.paused, e.deleted_at is not null as deleted,
            exists (select from posthorn.dead_letters d
                     where d.endpoint_id = e.id and d.blocks_lane and not d.replaying) as blocked,
            exists (select from posthorn.queue q where q.endpoint_id = e.id and q.probe_after_attempts = q.attempts)
              or exists (select from posthorn.endpoint_health h
                          where h.endpoint_id = e.id and h.circuit = 'half_open' and h.next_probe_at > now()) as probing
       from posthorn.endpoints e
      where e.id = $1 and ($2::text is null or e.tenant = $2) and not e.config ? 'notifier' for share of e`,
    [endpointId, tenant],
  );
  return rows[0] ?? null;
}

/** True if `error` says that another probe of the endpoint was requested at the same time. */
export function isProbeConflict(error: unknown): boolean {
  const { code, constraint } = (error ?? {}) as { code?: unknown; constraint?: unknown };
  return code === '23505' && constraint === 'queue_probe';
}
