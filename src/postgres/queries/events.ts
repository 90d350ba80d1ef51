import type { Uuid } from '../../domain/ids.ts';
import type { Pool, Queryable } from '../database.ts';
import { byIndex, type Found, type IdRange, lookInto, toFound, unseen } from './list-query.ts';
import { journalOfAccepted } from './stats-journal.ts';

/** An event as lists show it: without its payload. */
export interface EventView {
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: string;
  readonly deliveries: number;
  readonly idempotency_key: string | null;
  readonly options: EventOptions | null;
}

export interface EventOptions {
  readonly channels?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly schema_version?: string;
  readonly endpoint_ids?: readonly Uuid[];
  readonly deliver_at?: number;
  /** It came out of an outbox under a key that was another event's by then: this one's. */
  readonly duplicate_of?: Uuid;
  readonly key_conflict_with?: Uuid;
}

const columnsOf = (alias: string): string =>
  ['id', 'tenant', 'type', 'deliveries', 'idempotency_key', 'options']
    .map((name) => `${alias}.${name}`)
    .join(', ');
const COLUMNS = columnsOf('e');

export interface EventFilter extends IdRange {
  readonly tenant: string | null;
  readonly type: string | null;
  readonly limit: number;
}

/** Newest first, by primary key or (tenant, id). There is no index by type, which every accept would pay for. */
export async function listEvents(pool: Pool, filter: EventFilter): Promise<Found<EventView>> {
  const { text, values } = eventsStatement(filter);
  return toFound(
    (await pool.query<EventView & { reached_id: Uuid | null }>(text, values)).rows,
    filter.limit,
  );
}

export function eventsStatement(filter: EventFilter): { text: string; values: unknown[] } {
  const values: unknown[] = [filter.limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const { tenant, type } = filter;
  const range =
    tenant === null
      ? byIndex([], [], filter, bind)
      : byIndex(['tenant'], [unseen(bind(tenant))], filter, bind);
  const fits = type === null ? [] : [`q.type = ${bind(type)}`];
  return { text: lookInto('events', columnsOf('q'), range, fits, '$1'), values };
}

/** These, newest first. */
export async function loadEventViews(pool: Pool, ids: readonly Uuid[]): Promise<EventView[]> {
  const { rows } = await pool.query<EventView>(
    `select ${COLUMNS} from posthorn.events e where e.id = any ($1::uuid[]) order by e.id desc`,
    [ids],
  );
  return rows;
}

/**
 * The events that hold this key now: one per tenant. Without a tenant, the known ones are tried one by one by the
 * primary key of the keys.
 */
export async function findEventsByKey(
  pool: Pool,
  tenant: string | null,
  key: string,
  defaultTenant: string,
): Promise<EventView[]> {
  const { rows } = await pool.query<EventView>(
    `select ${COLUMNS}
       from (select $1::text as tenant where $1 is not null
             union select id from posthorn.tenants where $1::text is null
             union select $3::text where $1 is null) t
       join posthorn.idempotency_keys k on k.tenant = t.tenant and k.key = $2
       join posthorn.events e on e.id = k.event_id
      order by e.id desc`,
    [tenant, key, defaultTenant],
  );
  return rows;
}

export interface EventWithData extends EventView {
  /** Null once it has been expunged. */
  readonly data: Buffer | null;
}

export async function findEvent(pool: Pool, id: Uuid, tenant: string | null): Promise<EventWithData | null> {
  const { rows } = await pool.query<EventWithData>(
    `select ${COLUMNS}, e.data from posthorn.events e where e.id = $1 and ($2::text is null or e.tenant = $2)`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

/**
 * An event for one endpoint only, made by hand. Not through the accept stage: that has no place for what a test is,
 * and it is one row. False: the endpoint is off.
 */
export async function insertTestEvent(
  client: Queryable,
  event: {
    id: Uuid;
    deliveryId: Uuid;
    endpointId: Uuid;
    tenant: string;
    type: string;
    data: Buffer;
    options: object;
  },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `with live as materialized (
       select e.id, coalesce(e.config ->> 'ordering', 'none') = 'fifo' as fifo from posthorn.endpoints e
        where e.id = $3 and e.enabled and e.deleted_at is null for share of e
     ),
     accepted as (
       insert into posthorn.events (id, tenant, type, data, deliveries, options)
       select $1, $4, $5, $6, 1, $7 from live
     ),
     counted as (
       insert into posthorn.stats_journal (counts) select $8::text from live
     )
     insert into posthorn.queue (id, endpoint_id, fifo, trigger, tenant, event_type)
     select $2, live.id, live.fifo, 'test', $4, $5 from live`,
    [
      event.id,
      event.deliveryId,
      event.endpointId,
      event.tenant,
      event.type,
      event.data,
      JSON.stringify(event.options),
      journalOfAccepted([event]),
    ],
  );
  return rowCount === 1;
}
