/** Reads rows for the archive. */
import type { ArchiveKind } from '../../domain/archive.ts';
import { eventIdOfDelivery, firstIdAt, type Uuid } from '../../domain/ids.ts';
import type { AttemptRow, RowsByKind } from '../../ports/archive-rows.ts';
import type { RowRange } from '../../ports/archive-store.ts';
import type { Partition } from '../../ports/retention-store.ts';
import type { Pool } from '../database.ts';
import { parseReceivedHeaders } from '../received-headers.ts';
import { parseHeaders } from '../sent-headers.ts';
import { readUnredactedUntil, redactStoredHeaders } from './redact-attempts.ts';

const keyOf = (kind: ArchiveKind): string => (kind === 'attempts' ? 'delivery_id' : 'id');
const micros = (column: string): string =>
  `(extract(epoch from r.${column}) * 1000000)::bigint::text as ${column}`;

/** What to select of alias `r`, and SQL for the bytes of a row beyond its fixed columns. */
const READS: Readonly<Record<ArchiveKind, { readonly columns: string; readonly size: string }>> = {
  events: {
    columns: 'r.id, r.tenant, r.type, r.data, r.deliveries, r.idempotency_key, r.options::text as options',
    size: 'coalesce(octet_length(r.data), 0) + coalesce(octet_length(r.options::text), 0)',
  },
  deliveries: {
    columns: `r.id, r.endpoint_id, r.status, r.reason, r.attempts, r.replays, r.last_status_code, r.last_error_class,
              ${micros('finished_at')}, r.tenant, r.event_type, r.discard::text as discard`,
    size: 'coalesce(octet_length(r.discard::text), 0)',
  },
  attempts: {
    columns: `r.delivery_id, r.id, r.number, ${micros('started_at')}, r.duration_ms, r.dns_ms, r.connect_ms, r.tls_ms,
              r.first_byte_ms, r.status_code, r.outcome, r.error_class, r.error_message, r.url, r.request_headers,
              r.response_headers, r.response_body, r.response_truncated, r.trigger, r.worker`,
    size: `coalesce(octet_length(r.response_body), 0) + coalesce(octet_length(r.response_headers), 0) + octet_length(r.request_headers)
           + coalesce(octet_length(r.error_message), 0) + octet_length(r.url)`,
  },
};

/** SQL for where a range of alias `r` begins, and for its order. `values` are the parameters `$1`, `$2` and perhaps `$3`. */
function startOf(
  kind: ArchiveKind,
  { from, to, after }: RowRange,
): { readonly start: string; readonly order: string; readonly values: unknown[] } {
  const order = kind === 'attempts' ? 'r.delivery_id, r.id' : 'r.id';
  if (after === null) return { start: `r.${keyOf(kind)} >= $1`, order, values: [from, to] };
  if (kind !== 'attempts') return { start: 'r.id > $1', order, values: [after.key, to] };
  // With the first condition PostgreSQL skips the older partitions. The comparison of rows alone does not exclude any.
  const start = 'r.delivery_id >= $1 and (r.delivery_id, r.id) > ($1::uuid, $3::uuid)';
  return { start, order, values: [after.key, to, after.id] };
}

/** PostgreSQL knows the size of a value without reading it, so values that do not fit into `maxBytes` are never read. */
export async function readArchiveRows<K extends ArchiveKind>(
  pool: Pool,
  kind: K,
  range: RowRange,
  maxRows: number,
  maxBytes: number,
): Promise<RowsByKind[K][]> {
  const { columns, size } = READS[kind];
  const { start, order, values } = startOf(kind, range);
  const { rows } = await pool.query<RowsByKind[K]>(
    `select ${columns}
       from (select r.*, sum(${size}) over (order by ${order} rows unbounded preceding) - ${size} as bytes_before
               from (select * from posthorn.${kind} r where ${start} and r.${keyOf(kind)} < $2 order by ${order}
                      limit ${maxRows}) as r) as r
      where r.bytes_before < ${maxBytes} order by ${order}`,
    values,
  );
  return kind === 'attempts' ? ((await addTenants(pool, rows as AttemptRow[])) as RowsByKind[K][]) : rows;
}

/** Attempts are stored without their tenant. Retention drops partitions of attempts before those of events, so the event usually exists. */
async function addTenants(pool: Pool, rows: readonly Omit<AttemptRow, 'tenant'>[]): Promise<AttemptRow[]> {
  const eventIds = new Set(rows.map(({ delivery_id }) => eventIdOfDelivery(delivery_id)));
  const { rows: found } = await pool.query<{
    id: Uuid;
    tenant: string;
    headers: Record<string, string> | null;
  }>("select id, tenant, options -> 'headers' as headers from posthorn.events where id = any ($1::uuid[])", [
    [...eventIds],
  ]);
  const events = new Map(found.map((event) => [event.id, event]));
  const unredactedUntil = await readUnredactedUntil(pool);
  return rows.map((row) => {
    const event = events.get(eventIdOfDelivery(row.delivery_id));
    const { request_headers, response_headers } = row;
    const isRedacted = unredactedUntil === null || Number(row.started_at) / 1000 >= unredactedUntil;
    const redacted = isRedacted
      ? null
      : redactStoredHeaders({ request_headers, event_headers: event?.headers ?? null });
    // The archive has objects with the usual names of all headers: other programs read it too.
    return {
      ...row,
      request_headers: redacted ?? JSON.stringify(parseHeaders(request_headers)),
      response_headers: response_headers && JSON.stringify(parseReceivedHeaders(response_headers)),
      tenant: event?.tenant ?? null,
    };
  });
}

export async function findFirstKey(
  pool: Pool,
  kind: ArchiveKind,
  from: Uuid,
  to: Uuid,
): Promise<Uuid | null> {
  const key = keyOf(kind);
  const { rows } = await pool.query<{ key: Uuid }>(
    `select r.${key} as key from posthorn.${kind} r where r.${key} >= $1 and r.${key} < $2 order by r.${key} limit 1`,
    [from, to],
  );
  return rows[0]?.key ?? null;
}

/** A statement over this many rows takes some tens of milliseconds. */
const ROWS_PER_COUNT = 50_000;

interface CountedRows {
  readonly count: number;
  /** The last row that was counted. Null: there was none. */
  readonly key: Uuid | null;
  readonly id: Uuid | null;
}

/** Counts in steps, each of which reads its range of the primary key once. Calls `rest` after each. */
export async function countArchiveRows(
  pool: Pool,
  kind: ArchiveKind,
  { from, to }: Pick<RowRange, 'from' | 'to'>,
  rest?: () => Promise<void>,
): Promise<number> {
  let total = 0;
  for (let after: RowRange['after'] = null; ; ) {
    const { start, order, values } = startOf(kind, { from, to, after });
    const { rows }: { rows: CountedRows[] } = await pool.query(
      `with step as materialized (
         select r.${keyOf(kind)} as key, r.id from posthorn.${kind} r
          where ${start} and r.${keyOf(kind)} < $2 order by ${order} limit ${ROWS_PER_COUNT}
       )
       select n.count, l.key, l.id
         from (select count(*)::int as count from step) n
         left join (select key, id from step order by key desc, id desc limit 1) l on true`,
      values,
    );
    const { count, key, id } = rows[0]!;
    total += count;
    await rest?.();
    if (count < ROWS_PER_COUNT) return total;
    after = { key: key!, id: id! };
  }
}

/** About how many rows a partition has: what the last VACUUM or ANALYZE found, or the exact number if there was none. */
export async function estimateRows(
  pool: Pool,
  { name, table, fromMs, toMs }: Partition,
  rest?: () => Promise<void>,
): Promise<number> {
  const { rows } = await pool.query<{ rows: number }>(
    'select c.reltuples::float8 as rows from pg_class c where c.oid = to_regclass($1)',
    [`posthorn.${name}`],
  );
  const estimated = rows[0]?.rows ?? -1;
  return estimated >= 0
    ? estimated
    : countArchiveRows(pool, table, { from: firstIdAt(fromMs), to: firstIdAt(toMs) }, rest);
}
