/** Which deliveries a task is about, and the SQL that finds them: oldest first, from a cursor on, a chunk at a time. */
import type { DeliveryStatus } from '../../domain/delivery.ts';
import { firstIdAt, type Uuid } from '../../domain/ids.ts';
import type { DeadReason } from '../../domain/outcome.ts';
import type { Pool } from '../database.ts';
import { byIndex, type IdRange, type IndexRange, unseen } from './list-query.ts';

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

type Bind = (value: unknown) => string;
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
export function selectDeliveries(selection: Selection, bounds: SelectionBounds, bind: Bind): string {
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
  bounds: Pick<SelectionBounds, 'madeAt'>,
  bind: Bind,
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

export interface Counted {
  readonly count: number;
  /** Counting stopped before everything was looked at: there may be more. */
  readonly more: boolean;
}

/**
 * What a person wants to know before they press the button, not a ledger: of each place the newest rows, found by one
 * index, at most `most` of them, whatever is wanted of those. A type that is in none of them is not looked for any further.
 */
export async function countDeliveries(pool: Pool, selection: Selection, most: number): Promise<Counted> {
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const limit = bind(most);
  const looks = looksOf(selection, bind).map(
    ({ place, range, fits }) => `
      select count(*) filter (where ${['true', ...fits].join(' and ')})::int as fitting, count(*)::int as looked_at
        from (select q.* from posthorn.${place} q where ${range.conditions.join(' and ')}
               order by ${range.order} limit ${limit}) q`,
  );
  const { rows } = await pool.query<{ count: number; more: boolean }>(
    `select least(sum(fitting), ${limit})::int as count, max(looked_at) = ${limit} or sum(fitting) >= ${limit} as more
       from (${looks.join(' union all ')}) looks`,
    values,
  );
  return rows[0]!;
}

interface Look {
  readonly place: Place;
  readonly range: IndexRange;
  /** What the index does not know. */
  readonly fits: readonly string[];
}

function looksOf(selection: Selection, bind: Bind): Look[] {
  const { tenant, endpointId, statuses, type, since, until, ids } = selection;
  const span = {
    from: since === null ? null : firstIdAt(since),
    before: until === null ? null : firstIdAt(until),
  };
  const common: string[] = [];
  if (endpointId !== null) common.push(`q.endpoint_id = ${bind(endpointId)}::uuid`);
  if (tenant !== null) common.push(`q.tenant = ${bind(tenant)}::text`);
  if (type !== null) common.push(`q.event_type = ${bind(type)}::text`);
  return [...new Set(statuses.map((status) => PLACE_OF[status]))].flatMap((place) => {
    const fits = [...common, ...conditionsOf(place, selection, {}, bind)];
    if (ids !== null) {
      const range = byIndex([], [], span, bind);
      range.conditions.push(`q.id = any (${bind(`{${ids.join(',')}}`)}::uuid[])`);
      return [{ place, range, fits }];
    }
    // Those that were not delivered are few, and have indexes of their own.
    if (place === 'deliveries' && !statuses.includes('delivered'))
      return statuses
        .filter((status) => PLACE_OF[status] === place)
        .map((status) => ({ place, range: unusual(status, tenant, span, bind), fits }));
    if (endpointId !== null)
      return [
        { place, range: byIndex(['endpoint_id'], [unseen(bind(endpointId), 'uuid')], span, bind), fits },
      ];
    if (place === 'dead_letters' && tenant !== null)
      return [{ place, range: byIndex(['tenant'], [unseen(bind(tenant))], span, bind), fits }];
    return [{ place, range: byIndex([], [], span, bind), fits }];
  });
}

function unusual(status: DeliveryStatus, tenant: string | null, span: IdRange, bind: Bind): IndexRange {
  const columns = tenant === null ? ['status'] : ['tenant', 'status'];
  const values = [...(tenant === null ? [] : [unseen(bind(tenant))]), unseen(bind(status))];
  const range = byIndex(columns, values, span, bind);
  range.conditions.push(`q.status <> 'delivered'`);
  return range;
}
