/** Which deliveries a task is about, and the SQL that finds them: oldest first, from a cursor on, a chunk at a time. */
import type { DeliveryStatus } from '../../domain/delivery.ts';
import { firstIdAt, type Uuid } from '../../domain/ids.ts';
import type { DeadReason } from '../../domain/outcome.ts';
import type { Pool } from '../database.ts';

export interface Selection {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  readonly statuses: readonly DeliveryStatus[];
  readonly type: string | null;
  readonly reason: DeadReason | null;
  /** Accepted at or after, and before. */
  readonly since: number | null;
  readonly until: number | null;
  /** These and no others, if the rest fits too. */
  readonly ids: readonly Uuid[] | null;
}

type Place = 'queue' | 'dead_letters' | 'deliveries';

const PLACE_OF: Record<DeliveryStatus, Place> = {
  pending: 'queue',
  retrying: 'queue',
  dead: 'dead_letters',
  delivered: 'deliveries',
  discarded: 'deliveries',
  skipped: 'deliveries',
};

export interface SelectionBounds {
  /** SQL for the id after which to go on. */
  readonly after?: string;
  /** SQL for the time at which the selection was made: what died later is not part of it. */
  readonly madeAt?: string;
  /** SQL for how many, at most. */
  readonly limit: string;
}

/**
 * A query of (id, endpoint_id). Every place gives its oldest rows by an index that ends in `id` (of the endpoint, of
 * the tenant's dead letters, or the primary key), at most a chunk, and the chunk is cut from those.
 */
export function selectDeliveries(
  selection: Selection,
  bounds: SelectionBounds,
  bind: (value: unknown) => string,
): string {
  const conditions: string[] = [];
  if (bounds.after !== undefined) conditions.push(`q.id > ${bounds.after}`);
  if (selection.endpointId !== null) conditions.push(`q.endpoint_id = ${bind(selection.endpointId)}::uuid`);
  if (selection.tenant !== null) conditions.push(`q.tenant = ${bind(selection.tenant)}::text`);
  if (selection.type !== null) conditions.push(`q.event_type = ${bind(selection.type)}::text`);
  if (selection.since !== null) conditions.push(`q.id >= ${bind(firstIdAt(selection.since))}::uuid`);
  if (selection.until !== null) conditions.push(`q.id < ${bind(firstIdAt(selection.until))}::uuid`);
  if (selection.ids !== null) conditions.push(`q.id = any (${bind(`{${selection.ids.join(',')}}`)}::uuid[])`);
  const places = new Set(selection.statuses.map((status) => PLACE_OF[status]));
  const parts = [...places].map((place) => {
    const own = [...conditions, ...conditionsOf(place, selection, bounds, bind)];
    return `(select q.id, q.endpoint_id from posthorn.${place} q where ${own.join(' and ')} order by q.id limit ${bounds.limit})`;
  });
  return `select id, endpoint_id from (${parts.join(' union all ')}) as found order by id limit ${bounds.limit}`;
}

function conditionsOf(
  place: Place,
  selection: Selection,
  bounds: SelectionBounds,
  bind: (value: unknown) => string,
): string[] {
  const { statuses, reason } = selection;
  switch (place) {
    case 'queue': {
      if (statuses.includes('pending') && statuses.includes('retrying')) return ['true'];
      return [`(q.attempts > q.attempts_before_replay) = ${statuses.includes('retrying')}`];
    }
    case 'dead_letters':
      return [
        'not q.replaying',
        ...(bounds.madeAt === undefined ? [] : [`q.dead_at <= ${bounds.madeAt}`]),
        ...(reason === null ? [] : [`q.reason = ${bind(reason)}::text`]),
      ];
    case 'deliveries':
      return [
        `q.status = any (${bind(statuses.filter((status) => PLACE_OF[status] === place))}::text[])`,
        ...(reason === null ? [] : [`q.reason = ${bind(reason)}::text`]),
      ];
  }
}

/** Counting stops at `limit`: it is what a person wants to know before they press the button, not a ledger. */
export async function countDeliveries(pool: Pool, selection: Selection, limit: number): Promise<number> {
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const query = selectDeliveries(selection, { limit: bind(limit) }, bind);
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count from (${query}) as counted`,
    values,
  );
  return rows[0]!.count;
}
