/**
 * Lists deliveries from the three tables that they can be in. A query reads the newest matching rows of each table, by an index
 * and at most a page of them, and cuts the page from these. For a condition without an index, a bounded number of rows is
 * examined. docs/adr/0010 explains which way is taken when.
 */
import type { DeliveryStatus } from '../../domain/delivery.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import { type DeliveryTable, type DeliveryView, deliveryTables, selectViews } from './deliveries.ts';
import {
  byIndex,
  hideFromPlanner,
  type IdRange,
  type ListResult,
  MAX_EXAMINED,
  reachedBy,
  toListResult,
} from './list-query.ts';

export interface DeliveryFilter extends IdRange {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  /** `from` and `before` must be the bounds of its deliveries. */
  readonly eventId: Uuid | null;
  /** `waiting`: pending or retrying. */
  readonly status: DeliveryStatus | 'waiting' | null;
  readonly type: string | null;
  readonly limit: number;
}

const TABLE_OF: Record<DeliveryStatus | 'waiting', DeliveryTable> = {
  waiting: 'queue',
  pending: 'queue',
  retrying: 'queue',
  dead: 'dead_letters',
  delivered: 'deliveries',
  discarded: 'deliveries',
  skipped: 'deliveries',
};

/** For a tenant with more endpoints than this, deliveries are found through its events. */
const FEW_ENDPOINTS = 50;

/** SQL for the matching rows of one table. */
interface Part {
  readonly rows: string;
  /** Common table expressions that `rows` uses, by name. */
  readonly ctes?: Readonly<Record<string, string>>;
  /** Queries for the oldest id that was examined, as text, or null. Older rows are not in the result. */
  readonly reached?: readonly string[];
}

interface Search extends DeliveryFilter {
  /** How many endpoints the tenant has, if the search is by tenant. */
  readonly endpoints: number;
  readonly bind: (value: unknown) => string;
  /** The events of a search through events, which all tables share. */
  eventCtes?: Readonly<Record<string, string>>;
}

export async function listDeliveries(pool: Pool, filter: DeliveryFilter): Promise<ListResult<DeliveryView>> {
  const { tenant } = filter;
  const byTenant = tenant !== null && filter.endpointId === null && filter.eventId === null;
  const endpoints = byTenant ? await countEndpoints(pool, tenant) : 1;
  const { text, values } = deliveriesStatement(filter, endpoints);
  const { rows } = await pool.query<DeliveryView & { reached_id: Uuid | null }>(text, values);
  return toListResult(rows, filter.limit);
}

async function countEndpoints(pool: Pool, tenant: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::int as count
       from (select from posthorn.endpoints where tenant = $1 limit ${FEW_ENDPOINTS + 1}) few`,
    [tenant],
  );
  return rows[0]!.count;
}

export function deliveriesStatement(
  filter: DeliveryFilter,
  endpoints: number,
): { text: string; values: unknown[] } {
  const values: unknown[] = [filter.limit];
  const search: Search = { ...filter, endpoints, bind: (value) => `$${values.push(value)}` };
  const wanted = filter.status === null ? deliveryTables : [TABLE_OF[filter.status]];
  const parts = wanted.map((table) => ({ table, ...partOf(table, search) }));
  // An expression that several parts share has the same name in each, so it appears once.
  const ctes = Object.entries(Object.assign({}, ...parts.map((part) => part.ctes ?? {})));
  const reached = parts.flatMap((part) => part.reached ?? []);
  const text = `
    with ${ctes.map(([name, rows]) => `${name} as materialized (${rows}), `).join('')}
    found as (
      select * from (${parts.map(({ table, rows }) => selectViews(table, `(${rows})`)).join(' union all ')}) f
       order by id desc limit $1
    )
    select found.*, reached.id as reached_id
      from (select max(id) as id from (${['select null::text', ...reached].join(' union all ')}) r(id)) reached
      left join found on true
     order by found.id desc`;
  return { text, values };
}

function partOf(table: DeliveryTable, search: Search): Part {
  const { tenant, endpointId, eventId, status, type } = search;
  const isRareStatus = table === 'deliveries' && status !== null && status !== 'delivered';
  if (endpointId !== null && !isRareStatus) return partByEndpoints(table, search);
  if (eventId !== null) return partByEvent(table, search);
  if (isRareStatus) return partByStatus(search);
  if (tenant === null) return partByRange(table, search, byIndex([], [], search, search.bind));
  if (table === 'dead_letters')
    return partByRange(
      table,
      search,
      byIndex(['tenant'], [hideFromPlanner(search.bind(tenant))], search, search.bind),
    );
  // One endpoint may have few deliveries of the type and another many.
  const isTypeInHistory = table === 'deliveries' && type !== null;
  if (search.endpoints > FEW_ENDPOINTS || isTypeInHistory) return partByEvents(table, search);
  return partByEndpoints(table, search);
}

/** The conditions of the search that no index serves. */
function unindexedConditions(table: DeliveryTable, { status, type, bind }: Search): string[] {
  const conditions: string[] = [];
  if (type !== null) conditions.push(`q.event_type = ${bind(type)}`);
  if (table === 'dead_letters') conditions.push('not q.replaying');
  if (status === 'pending' || status === 'retrying')
    conditions.push(`(q.attempts > q.attempts_before_replay) = ${status === 'retrying'}`);
  if (table === 'deliveries' && status !== null) conditions.push(`q.status = ${bind(status)}`);
  return conditions;
}

function partByRange(
  table: DeliveryTable,
  search: Search,
  range: ReturnType<typeof byIndex>,
  moreConditions: string[] = [],
): Part {
  const newest = (maxRows: string) =>
    `select q.* from posthorn.${table} q where ${range.conditions.join(' and ')} order by ${range.order} limit ${maxRows}`;
  const conditions = [...unindexedConditions(table, search), ...moreConditions];
  if (conditions.length === 0) return { rows: newest('$1') };
  const examined = `examined_${table}`;
  const found = `found_in_${table}`;
  return {
    ctes: { [examined]: newest(String(MAX_EXAMINED)), [found]: matching(examined, conditions, range.order) },
    rows: `select * from ${found}`,
    reached: [reachedBy(examined, MAX_EXAMINED, found, '$1')],
  };
}

const matching = (from: string, conditions: readonly string[], order = 'q.id desc'): string =>
  `select q.* from ${from} q where ${['true', ...conditions].join(' and ')} order by ${order} limit $1`;

/** Endpoint by endpoint, by the index that the engine uses. Endpoints of another tenant contribute nothing. */
function partByEndpoints(table: DeliveryTable, search: Search): Part {
  const { tenant, endpointId, bind, limit } = search;
  const which: string[] = [];
  if (tenant !== null) which.push(`e.tenant = ${bind(tenant)}`);
  if (endpointId !== null) which.push(`e.id = ${bind(endpointId)}`);
  const range = byIndex(['endpoint_id'], ['e.id'], search, bind);
  const newest = (maxRows: string) => `
    select q.* from posthorn.endpoints e
     cross join lateral (select q.* from posthorn.${table} q where ${range.conditions.join(' and ')}
                          order by ${range.order} limit ${maxRows}) q
     where ${which.join(' and ')}`;
  const conditions = unindexedConditions(table, search);
  if (conditions.length === 0) return { rows: matching(`(${newest('$1')})`, []) };
  // Nearly all of history is delivered, so few rows need to be examined for it.
  const maxRows = search.status === 'delivered' && search.type === null ? 2 * limit : MAX_EXAMINED;
  const share = Math.max(2 * limit, Math.ceil(maxRows / Math.max(1, search.endpoints)));
  const examined = `examined_${table}`;
  return {
    ctes: { [examined]: newest(String(share)) },
    rows: matching(examined, conditions),
    reached: [`select min(id::text) from ${examined} group by endpoint_id having count(*) = ${share}`],
  };
}

/** A range of the primary key. The event of another tenant contributes nothing. */
function partByEvent(table: DeliveryTable, search: Search): Part {
  const { tenant, endpointId, eventId, bind } = search;
  const range = byIndex([], [], search, bind);
  if (tenant !== null)
    range.conditions.push(
      `exists (select from posthorn.events e where e.id = ${bind(eventId)} and e.tenant = ${bind(tenant)})`,
    );
  return partByRange(
    table,
    search,
    range,
    endpointId === null ? [] : [`q.endpoint_id = ${bind(endpointId)}`],
  );
}

/** Skipped and discarded deliveries are few, and have an index of their own. */
function partByStatus(search: Search): Part {
  const { tenant, endpointId, status, bind } = search;
  const columns = tenant === null ? ['status'] : ['tenant', 'status'];
  const values = [...(tenant === null ? [] : [hideFromPlanner(bind(tenant))]), hideFromPlanner(bind(status))];
  const range = byIndex(columns, values, search, bind);
  range.conditions.push(`q.status <> 'delivered'`);
  return partByRange(
    'deliveries',
    search,
    range,
    endpointId === null ? [] : [`q.endpoint_id = ${bind(endpointId)}`],
  );
}

/** The tenant's events by their index, and the deliveries of those that match by their ids. */
function partByEvents(table: DeliveryTable, search: Search): Part {
  const { bind, limit, from, before } = search;
  const maxRows = 2 * limit;
  search.eventCtes ??= examineEvents(search, maxRows);
  const bounds = [
    ...(from === null ? [] : [`q.id >= ${bind(from)}`]),
    ...(before === null ? [] : [`q.id < ${bind(before)}`]),
  ];
  const rows = `
    select q.* from matching_events e
     cross join lateral (select q.* from posthorn.${table} q
                          where ${['q.id >= e.id', 'q.id <= e.last_id', ...bounds].join(' and ')}
                          order by q.id desc limit $1) q`;
  return {
    ctes: search.eventCtes,
    rows: matching(`(${rows})`, unindexedConditions(table, search)),
    reached: [
      reachedBy('examined_events', MAX_EXAMINED, 'matching_events', String(maxRows)),
      `select case when count(*) = ${maxRows} then min(id::text) end from matching_events`,
    ],
  };
}

function examineEvents(search: Search, maxRows: number): Readonly<Record<string, string>> {
  const { tenant, type, bind } = search;
  const range = byIndex(['tenant'], [hideFromPlanner(bind(tenant))], search, bind);
  return {
    examined_events: `
      select q.id, q.tenant, q.type, q.deliveries, q.deliveries = 0 and q.options -> 'skipped' is not null as skipped from posthorn.events q
       where ${range.conditions.join(' and ')} order by ${range.order} limit ${MAX_EXAMINED}`,
    matching_events: `
      select q.id, posthorn.last_delivery_id(q.id) as last_id from examined_events q
       where (q.deliveries > 0 or q.skipped) ${type === null ? '' : `and q.type = ${bind(type)}`} order by ${range.order} limit ${maxRows}`,
  };
}
