import type { OutboxLag, OutboxRead, OutboxRow } from '../../ports/outbox-store.ts';
import type { Pool } from '../database.ts';

// In order and without locks: the accept statement locks the rows and finds out which still exist. With SKIP LOCKED a
// second reader would overtake the first, and FIFO endpoints would get events out of order. The window function only adds
// up sizes: payloads of rows that do not fit are not fetched.
const READ = {
  name: 'outbox_read',
  text: `
    with head as materialized (
      select seq, id, tenant, type, data, idempotency_key, options, created_at, octet_length(data) as bytes
        from posthorn.outbox where seq > $1 and tenant <> all ($5::text[]) order by seq limit $3
    )
    select seq::text, id, tenant, type, data, idempotency_key as "idempotencyKey", options
      from (select *, sum(bytes) over (order by seq) - bytes as bytes_before from head) sized
     where (bytes_before < $4 or bytes_before = 0)
       and ($2::float8 = 0 or (select min(created_at) from head) < clock_timestamp() - make_interval(secs => $2::float8))
     order by sized.seq`, // `seq` alone would sort by the text
};

const PROBE = {
  name: 'outbox_probe',
  text: 'select from posthorn.outbox where seq > $1 limit 1',
};

/** True if there are rows after this one. Takes half the time of a read, which prepares a sort and a sum. */
export async function hasOutboxRows(pool: Pool, afterSeq: string): Promise<boolean> {
  const { rowCount } = await pool.query({ ...PROBE, values: [afterSeq] });
  return rowCount !== 0;
}

export async function readOutbox(pool: Pool, read: OutboxRead): Promise<OutboxRow[]> {
  const { rows } = await pool.query<OutboxRow>({
    ...READ,
    values: [read.afterSeq, read.minAgeMs / 1000, read.maxRows, read.maxBytes, read.exceptTenants ?? []],
  });
  return rows;
}

// Keeps the id, unless another row has it: rows that were inserted by hand may repeat an id.
const REJECT = {
  name: 'outbox_reject',
  text: `
    with removed as (
      delete from posthorn.outbox o using unnest($1::bigint[], $2::text[]) as refused(seq, reason)
       where o.seq = refused.seq
      returning o.*, refused.reason
    )
    insert into posthorn.outbox_rejected
           (id, tenant, type, data, idempotency_key, fingerprint, options, created_at, reason)
    select case when row_number() over (partition by id order by seq) > 1
                  or exists (select from posthorn.outbox_rejected r where r.id = removed.id)
                then gen_random_uuid() else id end,
           tenant, type, data, idempotency_key, fingerprint, options, created_at, reason
      from removed`,
};

/** Moves rows that cannot become events to the rejected ones, so that nothing waits behind them. */
export async function rejectOutboxRows(
  pool: Pool,
  rejected: readonly { seq: string; reason: string }[],
): Promise<void> {
  await pool.query({
    ...REJECT,
    values: [rejected.map(({ seq }) => seq), rejected.map(({ reason }) => reason)],
  });
}

const STATE = {
  name: 'outbox_state',
  text: `
    select o.seq::text as oldest_seq, coalesce(extract(epoch from clock_timestamp() - o.created_at) * 1000, 0)::float8 as lag_ms,
           (select count(*)::int from (select from posthorn.outbox_rejected limit 1000) few) as rejected
      from (select) as one left join (select seq, created_at from posthorn.outbox order by seq limit 1) o on true`,
};

/** `rejected` is counted up to 1,000. */
export async function readOutboxLag(pool: Pool): Promise<OutboxLag> {
  const { rows } = await pool.query<{ oldest_seq: string | null; lag_ms: number; rejected: number }>(STATE);
  const { oldest_seq: oldestSeq, lag_ms: lagMs, rejected } = rows[0]!;
  return { lagMs: Math.max(0, lagMs), oldestSeq, rejected };
}

const WRITE_LIMITS = {
  name: 'publish_limits',
  text: 'update posthorn.publish_limits set max_event_bytes = $1 where max_event_bytes <> $1',
};

/** Stores the limit that `posthorn.publish` enforces. */
export async function writePublishLimits(pool: Pool, limits: { maxEventBytes: number }): Promise<void> {
  await pool.query({ ...WRITE_LIMITS, values: [limits.maxEventBytes] });
}
