import type { UnmatchedReason } from '../../domain/event.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem.ts';
import type { Pool, Queryable } from '../database.ts';
import {
  byIndex,
  hideFromPlanner,
  type IdRange,
  type IndexRange,
  type ListResult,
  listQuery,
  toListResult,
} from './list-query.ts';
import { journalOfAccepted } from './stats-journal.ts';

/** An event without its payload. */
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
  /** What is wrong with the payload, as the catalogue was when the event was accepted. */
  readonly schema_errors?: readonly FieldError[];
  readonly endpoint_ids?: readonly Uuid[];
  readonly deliver_at?: number;
  readonly unmatched_reason?: UnmatchedReason;
  /** How many disabled endpoints matched the event when it was accepted. */
  readonly skipped?: number;
  /** The earlier event with the same content that holds the idempotency key of this one. Only an event from outbox, relay or Kafka has it. */
  readonly duplicate_of?: Uuid;
  /** The same, with different content. */
  readonly key_conflict_with?: Uuid;
  /** When and by whom the payload was deleted on request. */
  readonly expunged_at?: number;
  readonly expunged_by?: string;
}

export const eventColumnsOf = (alias: string): string =>
  ['id', 'tenant', 'type', 'deliveries', 'idempotency_key', 'options']
    .map((name) => `${alias}.${name}`)
    .join(', ');
const COLUMNS = eventColumnsOf('e');

export interface EventFilter extends IdRange {
  readonly tenant: string | null;
  readonly type: string | null;
  /** Only events that were sent to no endpoint. */
  readonly unsent?: boolean;
  readonly limit: number;
}

/** Newest first, by primary key or (tenant, id). There is no index by type: it would slow down every accept. */
export async function listEvents(pool: Pool, filter: EventFilter): Promise<ListResult<EventView>> {
  const { text, values } = eventsStatement(filter);
  return toListResult(
    (await pool.query<EventView & { reached_id: Uuid | null }>(text, values)).rows,
    filter.limit,
  );
}

export function eventsStatement(filter: EventFilter): { text: string; values: unknown[] } {
  const values: unknown[] = [filter.limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  const range = eventRange(filter, bind);
  return {
    text: listQuery('events', eventColumnsOf('q'), range, eventConditions(filter, bind), '$1'),
    values,
  };
}

type Bind = (value: unknown) => string;

export const eventRange = (filter: EventFilter, bind: Bind): IndexRange =>
  filter.tenant === null
    ? byIndex([], [], filter, bind)
    : byIndex(['tenant'], [hideFromPlanner(bind(filter.tenant))], filter, bind);

/** The conditions of the filter that no index serves. */
export function eventConditions({ type, unsent = false }: EventFilter, bind: Bind): string[] {
  const conditions = type === null ? [] : [`q.type = ${bind(type)}`];
  if (unsent) conditions.push('q.deliveries = 0');
  return conditions;
}

/** The events with these ids, newest first. */
export async function loadEventViews(pool: Pool, ids: readonly Uuid[]): Promise<EventView[]> {
  const { rows } = await pool.query<EventView>(
    `select ${COLUMNS} from posthorn.events e where e.id = any ($1::uuid[]) order by e.id desc`,
    [ids],
  );
  return rows;
}

/** The events that hold this idempotency key now, at most one per tenant. Null: looks the key up for every tenant. */
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
  /** Null: the payload was deleted. */
  readonly data: Buffer | null;
  /** How many deliveries of a large fan-out are accepted but not written yet. */
  readonly unwritten_deliveries: number;
}

export async function findEvent(pool: Pool, id: Uuid, tenant: string | null): Promise<EventWithData | null> {
  const { rows } = await pool.query<EventWithData>(
    `select ${COLUMNS}, e.data,
            (select coalesce(sum(cardinality(s.endpoint_ids)), 0)::int from posthorn.fan_out_slices s
              where s.event_id = e.id) as unwritten_deliveries
       from posthorn.events e where e.id = $1 and ($2::text is null or e.tenant = $2)`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

/** Locks the event against replays and other changes until the transaction ends. */
export async function lockEvent(
  client: Queryable,
  id: Uuid,
  tenant: string | null,
): Promise<EventView | null> {
  const { rows } = await client.query<EventView>(
    `select ${COLUMNS} from posthorn.events e where e.id = $1 and ($2::text is null or e.tenant = $2) for update`,
    [id, tenant],
  );
  return rows[0] ?? null;
}

/**
 * When a test event is a requested probe, which is sent even while the circuit is open. `if_open`: if the circuit is open,
 * no other probe was requested, and (FIFO) nothing waits before it.
 */
export type TestProbe = 'always' | 'if_open' | 'never';

/**
 * Stores an event for one endpoint only. The accept stage cannot do this, because it does not know test deliveries. Returns
 * false if the endpoint is disabled or deleted. Throws a unique violation if another probe was requested at the same time.
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
  probe: TestProbe,
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
     insert into posthorn.queue (id, endpoint_id, fifo, trigger, tenant, event_type, probe_after_attempts)
     select $2, live.id, live.fifo, 'test', $4, $5,
            case when $9::text = 'always' then 0
                 when $9::text = 'if_open'
                  and exists (select from posthorn.endpoint_health h where h.endpoint_id = live.id and h.circuit <> 'closed')
                  and not exists (select from posthorn.queue q
                                   where q.endpoint_id = live.id and (live.fifo or q.probe_after_attempts = q.attempts))
                 then 0 end
       from live`,
    [
      event.id,
      event.deliveryId,
      event.endpointId,
      event.tenant,
      event.type,
      event.data,
      JSON.stringify(event.options),
      journalOfAccepted([event]),
      probe,
    ],
  );
  return rowCount === 1;
}
