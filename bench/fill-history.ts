/**
 * Fills a database with history, as if Posthorn had run for weeks: events, deliveries in every state, attempts, audit
 * entries. Uses SQL statements over chunks of events, because five million API requests would take an hour.
 */
import type pg from 'pg';

export interface HistoryOptions {
  readonly deliveries: number;
  /** The deliveries are spread over this time, which ends now. The partitions for it must exist. */
  readonly spanMs: number;
  /** How many of a thousand deliveries are dead, waiting, discarded and skipped. The rest is delivered. */
  readonly perMille: Readonly<Record<'dead' | 'waiting' | 'discarded' | 'skipped', number>>;
  /** The share of deliveries that have an attempt. */
  readonly attemptsPercent: number;
  readonly dataBytes: number;
  /** SQL for the payload of the event with the number `n`. Default: a string of `dataBytes`. */
  readonly data?: string;
}

type Query = <T extends pg.QueryResultRow>(text: string, values?: unknown[]) => Promise<T[]>;

/** The type of one in 100,000 events, for filters that match little. */
export const RARE_TYPE = 'invoice.voided';
/** The type of one event in five. The higher its number, the rarer a type. */
export const COMMON_TYPE = 'type.00';

const EVENTS_PER_CHUNK = 50_000;
/** One of ten events goes to three endpoints. */
const DELIVERIES_PER_EVENT = 1.2;

/** Creates endpoints for tenants of very uneven size. Nothing is sent to them: waiting deliveries are due tomorrow. */
export async function fillEndpoints(query: Query, count: number): Promise<void> {
  await query(
    `with made as (
       insert into posthorn.endpoints (id, tenant, url, version)
       select ${buildIdSql('extract(epoch from now())::bigint * 1000', 'n', "'ffff'")},
              'tenant-' || lpad(floor(12 * power(n::float8 / $1, 3))::text, 2, '0'), 'http://127.0.0.1:9/' || n, 1
         from generate_series(0, $1 - 1) n
       returning tenant
     )
     insert into posthorn.tenants (id) select distinct tenant from made on conflict do nothing`,
    [count],
  );
}

/** Fills events, deliveries and attempts. The first endpoints get most of the deliveries. */
export async function fillHistory(
  query: Query,
  options: HistoryOptions,
  onProgress: (deliveries: number) => void = () => {},
): Promise<void> {
  const eventCount = Math.ceil(options.deliveries / DELIVERIES_PER_EVENT);
  const startMs = Date.now() - options.spanMs;
  await query(`create unlogged table if not exists posthorn.fill_endpoints as
    select row_number() over (order by id) - 1 as position, id, tenant,
           row_number() over (partition by tenant order by id) - 1 as place,
           count(*) over (partition by tenant) as places
      from posthorn.endpoints where deleted_at is null`);
  const [row] = await query<{ count: number }>('select count(*)::int as count from posthorn.fill_endpoints');
  const statement = buildChunkStatement(options, row!.count);
  try {
    for (let first = 0; first < eventCount; first += EVENTS_PER_CHUNK) {
      const last = Math.min(eventCount, first + EVENTS_PER_CHUNK) - 1;
      await query(statement, [first, last, startMs, options.spanMs / eventCount]);
      onProgress(Math.min(options.deliveries, Math.round((last + 1) * DELIVERIES_PER_EVENT)));
    }
  } finally {
    await query('drop table posthorn.fill_endpoints');
  }
  // Planner statistics and the visibility map, as autovacuum would have left them by now.
  await query(
    'vacuum (analyze) posthorn.events, posthorn.deliveries, posthorn.attempts, posthorn.dead_letters, posthorn.queue',
  );
}

/** One statement that inserts the events $1 to $2. $3 is the start of the history, $4 the milliseconds between events. */
function buildChunkStatement(options: HistoryOptions, endpointCount: number): string {
  const { dead, waiting, discarded, skipped } = options.perMille;
  const { data = `'"' || repeat('x', ${options.dataBytes - 2}) || '"'` } = options;
  return `with drawn as materialized (
     select n, ${buildIdSql('($3::bigint + (n * $4::float8)::bigint)', 'n', "'0000'")} as id,
            floor(power(random(), 2.5) * ${endpointCount})::int as position,
            case when n % 100000 = 77 then '${RARE_TYPE}'
                 else 'type.' || lpad(floor(20 * power(random(), 1.9))::text, 2, '0') end as type,
            case when n % 10 = 0 then 3 else 1 end as wanted
       from generate_series($1::bigint, $2::bigint) n
   ),
   happened as materialized (
     select d.*, e.tenant, e.place, e.places, least(d.wanted, e.places) as fan
       from drawn d join posthorn.fill_endpoints e on e.position = d.position
   ),
   facts as (
     insert into posthorn.events (id, tenant, type, data, deliveries, idempotency_key)
     select id, tenant, type, convert_to(${data}, 'UTF8'), fan,
            case when n % 10 = 3 then 'key-' || n end from happened order by id
   ),
   keys as (
     insert into posthorn.idempotency_keys (tenant, key, event_id, fingerprint, expires_at)
     select tenant, 'key-' || n, id, '\\x00', now() + interval '1 day' from happened where n % 10 = 3
       on conflict do nothing
   ),
   fanned as materialized (
     select (left(h.id::text, 32) || lpad(to_hex(o), 4, '0'))::uuid as id, e.id as endpoint_id, h.tenant, h.type,
            random() * 1000 as state, random() * 100 < ${options.attemptsPercent} as logged,
            to_timestamp(($3::bigint + (h.n * $4::float8)::bigint) / 1000.0) as at
       from happened h cross join lateral generate_series(0, h.fan - 1) o
       join posthorn.fill_endpoints e on e.tenant = h.tenant and e.place = (h.place + o) % h.places
   ),
   dead as (
     insert into posthorn.dead_letters (id, endpoint_id, reason, attempts, replays, last_status_code, dead_at, tenant, event_type)
     select id, endpoint_id, case when state < ${dead * 0.9} then 'exhausted' when state < ${dead * 0.999} then 'rejected'
            else 'gone' end, 8, 0, 503, at, tenant, type from fanned where state < ${dead} order by id
   ),
   waiting as (
     insert into posthorn.queue (id, endpoint_id, due_at, attempts, tenant, event_type)
     select id, endpoint_id, now() + interval '1 day', case when state < ${dead + waiting * 0.8} then 1 else 0 end, tenant, type
       from fanned where state >= ${dead} and state < ${dead + waiting} order by id
   ),
   ended as (
     insert into posthorn.deliveries (id, endpoint_id, status, reason, attempts, replays, last_status_code, finished_at, tenant, event_type)
     select id, endpoint_id, status, case when status <> 'delivered' then 'endpoint_deleted' end, 1, 0, 200, at, tenant, type
       from (select *, case when state < ${dead + waiting + discarded} then 'discarded'
                            when state < ${dead + waiting + discarded + skipped} then 'skipped' else 'delivered' end as status
               from fanned where state >= ${dead + waiting}) f
      order by id
   )
   insert into posthorn.attempts (delivery_id, id, number, started_at, duration_ms, status_code, outcome, url, request_headers,
                                  response_truncated, trigger, worker)
   select id, gen_random_uuid(), 1, at, 3, 200, 'delivered', 'http://127.0.0.1:9/', '{}', false, 'auto', 'fill'
     from fanned where logged order by id`;
}

/** Fills the audit log with entries that are spread over the same time. */
export async function fillAuditLog(query: Query, entries: number, spanMs: number): Promise<void> {
  await query(
    `insert into posthorn.audit_log (id, tenant, actor, scope, action, object_type, object_id, request_id, address)
     select ${buildIdSql('($2::bigint + (n * $3::float8)::bigint)', 'n', "lpad(to_hex(n % 65536), 4, '0')")},
            case when n % 7 > 0 then 'tenant-' || lpad((n % 12)::text, 2, '0') end,
            case when n % 3 = 0 then 'admin' else 'key-' || n % 500 end, 'admin',
            case when n % 10000 = 5 then 'key.delete' else 'endpoint.update' end, 'endpoint', 'ep-' || n % 1000, 'req_fill', '127.0.0.1'
       from generate_series(0, $1 - 1) n`,
    [entries, Date.now() - spanMs, spanMs / entries],
  );
  await query('vacuum (analyze) posthorn.audit_log');
}

/** SQL for a UUID of version 7 from a time in milliseconds, a counter, and the last four hex digits. */
function buildIdSql(ms: string, n: string, tail: string): string {
  return `(lpad(to_hex(${ms}), 12, '0') || '7' || lpad(to_hex(${n} & 4095), 3, '0') || '8'
           || left(md5(${n}::text || random()::text), 11) || ${tail})::uuid`;
}
