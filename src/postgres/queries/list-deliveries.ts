/**
 * Lists of deliveries, out of the three tables that they are in. Each place gives its newest rows that fit, by an index,
 * at most a page; the page is cut from those. Where no index knows a condition, a bounded number of rows is looked at.
 * docs/adr/0010 says which way is taken when.
 */
import type { DeliveryStatus } from '../../domain/delivery.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';
import { type DeliveryView, type Place, places, show } from './deliveries.ts';
import { byIndex, type Found, type IdRange, LOOK_AT, reachedBy, toFound, unseen } from './list-query.ts';

export interface DeliveryFilter extends IdRange {
  readonly tenant: string | null;
  readonly endpointId: Uuid | null;
  /** Besides, `from` and `before` are the bounds of its deliveries. */
  readonly eventId: Uuid | null;
  /** `waiting`: pending or retrying. */
  readonly status: DeliveryStatus | 'waiting' | null;
  readonly type: string | null;
  readonly limit: number;
}

const PLACE_OF: Record<DeliveryStatus | 'waiting', Place> = {
  waiting: 'queue',
  pending: 'queue',
  retrying: 'queue',
  dead: 'dead_letters',
  delivered: 'deliveries',
  discarded: 'deliveries',
  skipped: 'deliveries',
};

/** A tenant with more endpoints than this has its deliveries found through its events. */
const FEW_ENDPOINTS = 50;

/** The rows of a place that fit, and how far back they are all there are. */
interface Part {
  readonly rows: string;
  /** Common table expressions that `rows` uses. */
  readonly looks?: Readonly<Record<string, string>>;
  /** SQL of ids as text, or nulls. */
  readonly reached?: readonly string[];
}

interface Search extends DeliveryFilter {
  /** Of the tenant, if that is what the search is by. */
  readonly endpoints: number;
  readonly bind: (value: unknown) => string;
  /** The same look for every place. */
  eventsLook?: Readonly<Record<string, string>>;
}

export async function listDeliveries(pool: Pool, filter: DeliveryFilter): Promise<Found<DeliveryView>> {
  const { tenant } = filter;
  const byTenant = tenant !== null && filter.endpointId === null && filter.eventId === null;
  const endpoints = byTenant ? await countEndpoints(pool, tenant) : 1;
  const { text, values } = deliveriesStatement(filter, endpoints);
  const { rows } = await pool.query<DeliveryView & { reached_id: Uuid | null }>(text, values);
  return toFound(rows, filter.limit);
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
  const wanted = filter.status === null ? places : [PLACE_OF[filter.status]];
  const parts = wanted.map((place) => ({ place, ...partOf(place, search) }));
  // What two parts share has one name and is there once.
  const looks = Object.entries(Object.assign({}, ...parts.map((part) => part.looks ?? {})));
  const reached = parts.flatMap((part) => part.reached ?? []);
  const text = `
    with ${looks.map(([name, rows]) => `${name} as materialized (${rows}), `).join('')}
    found as (
      select * from (${parts.map(({ place, rows }) => show(place, `(${rows})`)).join(' union all ')}) f
       order by id desc limit $1
    )
    select found.*, reached.id as reached_id
      from (select max(id) as id from (${['select null::text', ...reached].join(' union all ')}) r(id)) reached
      left join found on true
     order by found.id desc`;
  return { text, values };
}

function partOf(place: Place, search: Search): Part {
  const { tenant, endpointId, eventId, status, type } = search;
  const isUnusual = place === 'deliveries' && status !== null && status !== 'delivered';
  if (endpointId !== null && !isUnusual) return partByEndpoints(place, search);
  if (eventId !== null) return partByEvent(place, search);
  if (isUnusual) return partByStatus(search);
  if (tenant === null) return look(place, search, byIndex([], [], search, search.bind));
  if (place === 'dead_letters')
    return look(place, search, byIndex(['tenant'], [unseen(search.bind(tenant))], search, search.bind));
  const isLookedFor = place === 'deliveries' && type !== null;
  if (search.endpoints > FEW_ENDPOINTS || isLookedFor) return partByEvents(place, search);
  return partByEndpoints(place, search);
}

/** What no index knows of the rows that are wanted. */
function residue(place: Place, { status, type, bind }: Search): string[] {
  const fits: string[] = [];
  if (type !== null) fits.push(`q.event_type = ${bind(type)}`);
  if (place === 'dead_letters') fits.push('not q.replaying');
  if (status === 'pending' || status === 'retrying')
    fits.push(`(q.attempts > q.attempts_before_replay) = ${status === 'retrying'}`);
  if (place === 'deliveries' && status !== null) fits.push(`q.status = ${bind(status)}`);
  return fits;
}

function look(place: Place, search: Search, range: ReturnType<typeof byIndex>, also: string[] = []): Part {
  const newest = (most: string) =>
    `select q.* from posthorn.${place} q where ${range.conditions.join(' and ')} order by ${range.order} limit ${most}`;
  const fits = [...residue(place, search), ...also];
  if (fits.length === 0) return { rows: newest('$1') };
  const looked = `looked_at_${place}`;
  const found = `found_in_${place}`;
  return {
    looks: { [looked]: newest(String(LOOK_AT)), [found]: fitting(looked, fits, range.order) },
    rows: `select * from ${found}`,
    reached: [reachedBy(looked, LOOK_AT, found, '$1')],
  };
}

const fitting = (from: string, fits: readonly string[], order = 'q.id desc'): string =>
  `select q.* from ${from} q where ${['true', ...fits].join(' and ')} order by ${order} limit $1`;

/** Endpoint by endpoint, by the index that the engine has for them. Of another tenant: none. */
function partByEndpoints(place: Place, search: Search): Part {
  const { tenant, endpointId, bind, limit } = search;
  const which: string[] = [];
  if (tenant !== null) which.push(`e.tenant = ${bind(tenant)}`);
  if (endpointId !== null) which.push(`e.id = ${bind(endpointId)}`);
  const range = byIndex(['endpoint_id'], ['e.id'], search, bind);
  const newest = (most: string) => `
    select q.* from posthorn.endpoints e
     cross join lateral (select q.* from posthorn.${place} q where ${range.conditions.join(' and ')}
                          order by ${range.order} limit ${most}) q
     where ${which.join(' and ')}`;
  const fits = residue(place, search);
  if (fits.length === 0) return { rows: fitting(`(${newest('$1')})`, []) };
  // Nearly all of history was delivered.
  const most = search.status === 'delivered' && search.type === null ? 2 * limit : LOOK_AT;
  const share = Math.max(2 * limit, Math.ceil(most / Math.max(1, search.endpoints)));
  const name = `looked_at_${place}`;
  return {
    looks: { [name]: newest(String(share)) },
    rows: fitting(name, fits),
    reached: [`select min(id::text) from ${name} group by endpoint_id having count(*) = ${share}`],
  };
}

/** A range of the primary key. Of another tenant: none. */
function partByEvent(place: Place, search: Search): Part {
  const { tenant, endpointId, eventId, bind } = search;
  const range = byIndex([], [], search, bind);
  if (tenant !== null)
    range.conditions.push(
      `exists (select from posthorn.events e where e.id = ${bind(eventId)} and e.tenant = ${bind(tenant)})`,
    );
  return look(place, search, range, endpointId === null ? [] : [`q.endpoint_id = ${bind(endpointId)}`]);
}

/** Those that were not delivered are few, and have indexes of their own. */
function partByStatus(search: Search): Part {
  const { tenant, endpointId, status, bind } = search;
  const columns = tenant === null ? ['status'] : ['tenant', 'status'];
  const values = [...(tenant === null ? [] : [unseen(bind(tenant))]), unseen(bind(status))];
  const range = byIndex(columns, values, search, bind);
  range.conditions.push(`q.status <> 'delivered'`);
  return look(
    'deliveries',
    search,
    range,
    endpointId === null ? [] : [`q.endpoint_id = ${bind(endpointId)}`],
  );
}

/**
 * The tenant's events by their index, and the deliveries of those that fit by their ids: of a tenant with very many
 * endpoints, or of a type, of which one endpoint may have few and many others.
 */
function partByEvents(place: Place, search: Search): Part {
  const { bind, limit, from, before } = search;
  const most = 2 * limit;
  search.eventsLook ??= lookAtEvents(search, most);
  const bounds = [
    ...(from === null ? [] : [`q.id >= ${bind(from)}`]),
    ...(before === null ? [] : [`q.id < ${bind(before)}`]),
  ];
  const rows = `
    select q.* from fitting_events e
     cross join lateral (select q.* from posthorn.${place} q
                          where ${['q.id >= e.id', 'q.id <= e.last_id', ...bounds].join(' and ')}
                          order by q.id desc limit $1) q`;
  return {
    looks: search.eventsLook,
    rows: fitting(`(${rows})`, residue(place, search)),
    reached: [
      reachedBy('looked_at_events', LOOK_AT, 'fitting_events', String(most)),
      `select case when count(*) = ${most} then min(id::text) end from fitting_events`,
    ],
  };
}

function lookAtEvents(search: Search, most: number): Readonly<Record<string, string>> {
  const { tenant, type, bind } = search;
  const range = byIndex(['tenant'], [unseen(bind(tenant))], search, bind);
  return {
    looked_at_events: `
      select q.id, q.tenant, q.type, q.deliveries from posthorn.events q
       where ${range.conditions.join(' and ')} order by ${range.order} limit ${LOOK_AT}`,
    fitting_events: `
      select q.id, (left(q.id::text, 32) || 'ffff')::uuid as last_id from looked_at_events q
       where q.deliveries > 0 ${type === null ? '' : `and q.type = ${bind(type)}`} order by ${range.order} limit ${most}`,
  };
}
