/** Reads rows for the archive. */
import type { ArchiveKind } from '../../domain/archive.ts';
import { eventIdOfDelivery, type Uuid } from '../../domain/ids.ts';
import type { AttemptRow, RowsByKind } from '../../ports/archive-rows.ts';
import type { RowRange } from '../../ports/archive-store.ts';
import type { Pool } from '../database.ts';
import { readUnredactedUntil, redactedHeaders } from './redact-attempts.ts';

const keyOf = (kind: ArchiveKind): string => (kind === 'attempts' ? 'delivery_id' : 'id');
const micros = (column: string): string =>
  `(extract(epoch from r.${column}) * 1000000)::bigint::text as ${column}`;

/** What to select of alias `r`, and SQL for the bytes of a row beyond its fixed columns. */
const READS: Readonly<Record<ArchiveKind, { readonly columns: string; readonly size: string }>> = {
  events: {
    columns: 'r.id, r.tenant, r.type, r.data, r.deliveries, r.idempotency_key, r.options::text as options',
    size: 'coalesce(octet_length(r.data), 0)',
  },
  deliveries: {
    columns: `r.id, r.endpoint_id, r.status, r.reason, r.attempts, r.replays, r.last_status_code, r.last_error_class,
              ${micros('finished_at')}, r.tenant, r.event_type, r.discard::text as discard`,
    size: '0',
  },
  attempts: {
    columns: `r.delivery_id, r.id, r.number, ${micros('started_at')}, r.duration_ms, r.dns_ms, r.connect_ms, r.tls_ms,
              r.first_byte_ms, r.status_code, r.outcome, r.error_class, r.error_message, r.url, r.request_headers,
              r.response_headers, r.response_body, r.response_truncated, r.trigger, r.worker`,
    size: 'coalesce(octet_length(r.response_body), 0)',
  },
};

/** The sizes are known without reading the values, so what does not fit is never read. */
export async function readArchiveRows<K extends ArchiveKind>(
  pool: Pool,
  kind: K,
  { from, to, after }: RowRange,
  maxRows: number,
  maxBytes: number,
): Promise<RowsByKind[K][]> {
  const { columns, size } = READS[kind];
  const key = keyOf(kind);
  const order = kind === 'attempts' ? 'r.delivery_id, r.id' : 'r.id';
  const start =
    after === null
      ? `r.${key} >= $1`
      : kind === 'attempts'
        ? '(r.delivery_id, r.id) > ($1::uuid, $5::uuid)'
        : 'r.id > $1';
  const { rows } = await pool.query<RowsByKind[K]>(
    `select ${columns}
       from (select r.*, sum(${size}) over (order by ${order} rows unbounded preceding) - ${size} as bytes_before
               from (select * from posthorn.${kind} r where ${start} and r.${key} < $2 order by ${order} limit $3) as r) as r
      where r.bytes_before < $4 order by ${order}`,
    [after?.key ?? from, to, maxRows, maxBytes, ...(after !== null && kind === 'attempts' ? [after.id] : [])],
  );
  return kind === 'attempts' ? ((await addTenants(pool, rows as AttemptRow[])) as RowsByKind[K][]) : rows;
}

/** Attempts do not know their tenant. Partitions of attempts go before those of events, so the event is usually there. */
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
    const { request_headers } = row;
    const isRedacted = unredactedUntil === null || Number(row.started_at) / 1000 >= unredactedUntil;
    const redacted = isRedacted
      ? null
      : redactedHeaders({ request_headers, event_headers: event?.headers ?? null });
    return { ...row, request_headers: redacted ?? request_headers, tenant: event?.tenant ?? null };
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

/** About this many rows per step. */
const ROWS_PER_COUNT = 500_000;

/** Counts in steps, so that no statement takes long. */
export async function countArchiveRows(pool: Pool, kind: ArchiveKind, from: Uuid, to: Uuid): Promise<number> {
  const key = keyOf(kind);
  let total = 0;
  let start: Uuid | null = from;
  while (start !== null) {
    // The end of a step is a key, so that all attempts of a delivery are counted in the same step.
    const { rows: ends }: { rows: { key: Uuid }[] } = await pool.query(
      `select r.${key} as key from posthorn.${kind} r where r.${key} > $1 and r.${key} < $2
        order by r.${key} offset ${ROWS_PER_COUNT} limit 1`,
      [start, to],
    );
    const end: Uuid | null = ends[0]?.key ?? null;
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::int as count from posthorn.${kind} r where r.${key} >= $1 and r.${key} < $2`,
      [start, end ?? to],
    );
    total += rows[0]!.count;
    start = end;
  }
  return total;
}
