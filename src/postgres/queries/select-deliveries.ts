/** SQL for the deliveries that a task changes: oldest first, from a cursor on, a chunk at a time. */
import type { DeliveryStatus } from '../../domain/delivery.ts';
import { deliveryRangeOfEvent, firstIdAt, type Uuid } from '../../domain/ids.ts';
import type { DeadReason } from '../../domain/outcome.ts';
import type { Pool } from '../database.ts';
import type { DeliveryTable } from './deliveries.ts';
import { byIndex, hideFromPlanner, type IdRange, type IndexRange } from './list-query.ts';

export interface Selection {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  readonly statuses: readonly DeliveryStatus[];
  readonly type: string | null;
  readonly reason: DeadReason | null;
  /** Accepted at or after `since`, and before `until`, in milliseconds since 1970. */
  readonly since: number | null;
  readonly until: number | null;
  /** Only these, and only if they meet the other conditions. */
  readonly ids: readonly Uuid[] | null;
  /** Only deliveries of this event. Of a restore: the only event. */
  readonly eventId?: Uuid | null;
}

type Bind = (value: unknown) => string;

const TABLE_OF: Record<DeliveryStatus, DeliveryTable> = {
  pending: 'queue',
  retrying: 'queue',
  dead: 'dead_letters',
  delivered: 'deliveries',
  discarded: 'deliveries',
  skipped: 'deliveries',
};

export interface SelectionBounds {
  /** SQL for the id to continue after. */
  readonly after?: string;
  /** SQL for the time of the selection: deliveries that died later are not part of it. */
  readonly selectedAt?: string;
  /** SQL for the size of the chunk. */
  readonly limit: string;
}

/**
 * A query of (id, endpoint_id). Each table contributes its oldest rows by an index that ends in `id` (of the endpoint, of
 * the tenant's dead letters, or the primary key), at most a chunk; the chunk is cut from those.
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
  if (selection.eventId != null) {
    const [first, last] = deliveryRangeOfEvent(selection.eventId);
    conditions.push(`q.id >= ${bind(first)}::uuid`, `q.id <= ${bind(last)}::uuid`);
  }
  const tables = new Set(selection.statuses.map((status) => TABLE_OF[status]));
  const parts = [...tables].map((table) => {
    const own = [...conditions, ...conditionsOf(table, selection, bounds, bind)];
    return `(select q.id, q.endpoint_id from posthorn.${table} q where ${own.join(' and ')} order by q.id limit ${bounds.limit})`;
  });
  return `select id, endpoint_id from (${parts.join(' union all ')}) as found order by id limit ${bounds.limit}`;
}

function conditionsOf(
  table: DeliveryTable,
  selection: Selection,
  bounds: Pick<SelectionBounds, 'selectedAt'>,
  bind: Bind,
): string[] {
  const { statuses, reason } = selection;
  switch (table) {
    case 'queue': {
      if (statuses.includes('pending') && statuses.includes('retrying')) return ['true'];
      return [`(q.attempts > q.attempts_before_replay) = ${statuses.includes('retrying')}`];
    }
    case 'dead_letters':
      return [
        'not q.replaying',
        ...(bounds.selectedAt === undefined ? [] : [`q.dead_at <= ${bounds.selectedAt}`]),
        ...(reason === null ? [] : [`q.reason = ${bind(reason)}::text`]),
      ];
    case 'deliveries': {
      const finished = statuses.filter((status) => TABLE_OF[status] === table);
      // Selects only deliveries that were skipped because the endpoint was disabled, by their index. A debounced delivery is left
      // out because another one was sent in its place, an expunged one because it has no payload.
      if (selection.endpointId !== null && finished.join() === 'skipped' && reason === null)
        return [`q.status = 'skipped'`, `q.reason = 'endpoint_disabled'`];
      return [
        `q.status = any (${bind(finished)}::text[])`,
        ...(reason === null ? [] : [`q.reason = ${bind(reason)}::text`]),
      ];
    }
  }
}

export interface Counted {
  readonly count: number;
  /** Counting stopped before all rows were examined: there may be more. */
  readonly more: boolean;
  /** How many of them a replay leaves out: their endpoint is disabled or deleted. */
  readonly left_out: number;
}

const SENDING_ENDPOINTS = `(select e.id from posthorn.endpoints e where e.enabled and e.deleted_at is null)`;

/**
 * An estimate for a user who is about to start a task. Of each table, the newest `max` rows of one index are examined,
 * and those that match are counted. Older rows are not, even if few of the newest match.
 */
export async function countSelected(pool: Pool, selection: Selection, max: number): Promise<Counted> {
  const values: unknown[] = [];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const limit = bind(max);
  const scans = scansOf(selection, bind).map(
    ({ table, range, conditions }) => `
      select count(*) filter (where ${['true', ...conditions].join(' and ')})::int as matching, count(*)::int as examined,
             count(*) filter (where ${[...conditions, `q.endpoint_id not in ${SENDING_ENDPOINTS}`].join(' and ')})::int as off
        from (select q.* from posthorn.${table} q where ${range.conditions.join(' and ')}
               order by ${range.order} limit ${limit}) q`,
  );
  const { rows } = await pool.query<Counted>(
    `select least(sum(matching), ${limit})::int as count, max(examined) = ${limit} or sum(matching) >= ${limit} as more,
            least(sum(off), ${limit})::int as left_out
       from (${scans.join(' union all ')}) scans`,
    values,
  );
  return rows[0]!;
}

/** Rows of one table, by one index. */
interface Scan {
  readonly table: DeliveryTable;
  readonly range: IndexRange;
  /** The conditions that the index does not serve. */
  readonly conditions: readonly string[];
}

function scansOf(selection: Selection, bind: Bind): Scan[] {
  const { tenant, endpointId, statuses, type, since, until, ids, eventId = null } = selection;
  const span = {
    from: since === null ? null : firstIdAt(since),
    before: until === null ? null : firstIdAt(until),
  };
  const common: string[] = [];
  if (endpointId !== null) common.push(`q.endpoint_id = ${bind(endpointId)}::uuid`);
  if (tenant !== null) common.push(`q.tenant = ${bind(tenant)}::text`);
  if (type !== null) common.push(`q.event_type = ${bind(type)}::text`);
  return [...new Set(statuses.map((status) => TABLE_OF[status]))].flatMap((table) => {
    const conditions = [...common, ...conditionsOf(table, selection, {}, bind)];
    if (ids !== null) {
      const range = byIndex([], [], span, bind);
      range.conditions.push(`q.id = any (${bind(`{${ids.join(',')}}`)}::uuid[])`);
      return [{ table, range, conditions }];
    }
    if (eventId !== null) {
      const [first, last] = deliveryRangeOfEvent(eventId);
      const range = byIndex([], [], { from: first, before: null }, bind);
      range.conditions.push(`q.id <= ${bind(last)}::uuid`);
      return [{ table, range, conditions }];
    }
    // Skipped and discarded deliveries have indexes of their own.
    if (table === 'deliveries' && !statuses.includes('delivered'))
      return statuses
        .filter((status) => TABLE_OF[status] === table)
        .map((status) => ({ table, range: rareStatusRange(status, tenant, span, bind), conditions }));
    if (endpointId !== null)
      return [
        {
          table,
          range: byIndex(['endpoint_id'], [hideFromPlanner(bind(endpointId), 'uuid')], span, bind),
          conditions,
        },
      ];
    if (table === 'dead_letters' && tenant !== null)
      return [{ table, range: byIndex(['tenant'], [hideFromPlanner(bind(tenant))], span, bind), conditions }];
    return [{ table, range: byIndex([], [], span, bind), conditions }];
  });
}

function rareStatusRange(
  status: DeliveryStatus,
  tenant: string | null,
  span: IdRange,
  bind: Bind,
): IndexRange {
  const columns = tenant === null ? ['status'] : ['tenant', 'status'];
  const values = [...(tenant === null ? [] : [hideFromPlanner(bind(tenant))]), hideFromPlanner(bind(status))];
  const range = byIndex(columns, values, span, bind);
  range.conditions.push(`q.status <> 'delivered'`);
  return range;
}
