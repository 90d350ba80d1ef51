import type { UnmatchedReason } from '../../domain/event.ts';
import type { Uuid } from '../../domain/ids.ts';
import {
  type AppendOptions,
  type AppendResult,
  countDeliveries,
  type EventRecord,
  type IdempotencyKey,
  idempotencyKeyName,
  type KeyHolder,
} from '../../ports/accept-log.ts';
import type { Pool } from '../database.ts';
import { journalAccepted, journalOfAccepted, journalSkipped } from './stats-journal.ts';

// The payloads of a batch are sent as one blob that is cut up here. As an array of bytea they would be sent in
// hexadecimal (31 instead of 10 µs per event). The arrays contain ids, numbers and names that need no quoting.
const INCOMING = `
  unnest($2::uuid[], $3::text[], $4::text[], $5::int[], $6::int[], $7::int[])
         with ordinality as t(id, tenant, type, start, length, fanout, n)`;

// A delivery that is due later ages from then on: scheduled for next week, it must not have expired when it is due.
// $8: delivery ids, $9: index of the event (1-based), $10: endpoints, $11: due, $12: fifo.
const FANOUT = `
  unnest($8::uuid[], $9::int[], $10::uuid[], $11::float8[], $12::boolean[])
         with ordinality as d(id, n, endpoint_id, due_at, fifo, position)`;

/**
 * Deliveries to disabled endpoints: delivery ids, index of the event (1-based), endpoints. A statement has them as its last
 * parameters, and only if there are any, so that a batch without them costs nothing more.
 */
interface Skipping {
  readonly firstParameter: number;
  /** Joins and conditions that leave only the deliveries of events that this statement writes, with `n` and `k.id`. */
  readonly ofWritten: string;
}

const skipping = ({ firstParameter, ofWritten }: Skipping): string => `
    skipped as (
      insert into posthorn.deliveries (id, endpoint_id, status, reason, attempts, replays, finished_at, tenant, event_type)
      select k.id, k.endpoint_id, 'skipped', 'endpoint_disabled', 0, 0, now(), ($3::text[])[n], ($4::text[])[n]
        from unnest($${firstParameter}::uuid[], $${firstParameter + 1}::int[], $${firstParameter + 2}::uuid[]) as k(id, n, endpoint_id)
        ${ofWritten}
      returning endpoint_id
    ),
    counted_skipped as (${journalSkipped('skipped')}
    ),`;

// The function is called only for a tenant whose data is being deleted, and throws. The index of such tenants is empty.
const CURRENT = `current as materialized (
      select version from posthorn.subscription_version
       where not exists (select from posthorn.tenants t
                          where t.expunging_at is not null and t.id = any ($3::text[]) and posthorn.refuse_publish(t.id)))`;

// The usual case: no keys, first try. The statement that writes also reads the version, and a batch that was matched
// against an older version writes nothing.
const plain = (name: string, { skips }: { skips: boolean }) => ({
  name,
  text: `
    with ${CURRENT},${
      skips ? skipping({ firstParameter: 16, ofWritten: 'where (select version from current) = $1' }) : ''
    }
    accepted as (
      insert into posthorn.events (id, tenant, type, data, deliveries, options)
      select id, tenant, type, substring($13::bytea from start for length), fanout, ($14::json -> n::text)
        from ${INCOMING} where (select version from current) = $1
    ),
    queued as (
      insert into posthorn.queue (id, endpoint_id, due_at, ages_from, fifo, tenant, event_type)
      select id, endpoint_id, to_timestamp(due_at), to_timestamp(due_at), fifo, ($3::text[])[n], ($4::text[])[n]
        from ${FANOUT} where (select version from current) = $1
    ),
    counted as (
      insert into posthorn.stats_journal (counts) select $15::text where (select version from current) = $1
    )
    select version from current`,
});
const PLAIN = plain('accept_plain', { skips: false });
const PLAIN_SKIPPING = plain('accept_plain_skipping', { skips: true });

// Locks the outbox rows before anything is written for them: a row that another process has stored meanwhile no longer
// exists, and must not take the key. The statement deletes the rows, so each becomes an event exactly once. A row that
// loses its idempotency key stays and is stored without the key later.
const LOCK_OUTBOX_ROWS = `
    locked_rows as materialized (
      select o.seq, o.id from posthorn.outbox o
       where o.seq = any ($20::bigint[]) and (select version from current) = $1 order by o.seq for update
    ),`;
// Not a join: the planner cannot estimate the number of rows, and scanned the whole backlog for each.
const DELETE_OUTBOX_ROWS = `
    deleted_rows as (
      delete from posthorn.outbox where seq = any (array(
        select seq from locked_rows where id <> all (array(
          select id from incoming where key is not null and id <> all (array(select event_id from won))))))
    ),`;

// From parameter `first` on: index of the event (1-based), first ordinal, endpoints, has_fifo, was_disabled, deliver_at.
const storeSlices = (first: number): string => `
    reserved as materialized (
      select n, nextval('posthorn.acceptance_order') as seq from (select n from incoming order by n) as events
    ),
    sliced as (
      insert into posthorn.fan_out_slices
             (event_id, first_ordinal, tenant, event_type, seq, endpoint_ids, has_fifo, was_disabled, deliver_at)
      select i.id, s.first_ordinal, i.tenant, i.type, r.seq, s.endpoint_ids::uuid[], s.has_fifo, s.was_disabled,
             to_timestamp(s.deliver_at)
        from unnest($${first}::int[], $${first + 1}::int[], $${first + 2}::text[], $${first + 3}::boolean[], $${first + 4}::boolean[],
                    $${first + 5}::float8[])
             as s(n, first_ordinal, endpoint_ids, has_fifo, was_disabled, deliver_at)
        join incoming i using (n) join accepted a on a.id = i.id join reserved r using (n)
    ),`;

type Variant = 'usual' | 'skipping' | 'sliced';

/** What a guarded statement writes besides the usual, by variant. Its parameters are the last ones, from `first` on. */
const VARIANTS: Record<Variant, (first: number) => string> = {
  usual: () => '',
  skipping: (first) =>
    skipping({
      firstParameter: first,
      ofWritten: 'join incoming i using (n) join accepted a on a.id = i.id',
    }),
  sliced: storeSlices,
};

// With idempotency keys, or if an earlier try may have been committed. Keys are sorted, or two batches with two keys in
// common could deadlock. An expired key is taken over; a key that an earlier try of the same event took counts as won.
// Deliveries are written only for events that this statement writes: those of an earlier try may be delivered already.
// An event with unwritten deliveries is alone in its batch ("sliced"): all its deliveries share one acceptance number.
const guarded = (name: string, { fromOutbox, variant }: { fromOutbox: boolean; variant: Variant }) => ({
  name,
  text: `
    with ${CURRENT},${fromOutbox ? LOCK_OUTBOX_ROWS : ''}
    incoming as materialized (
      select t.*, ($15::text[])[n] as key, ($16::bytea[])[n] as fingerprint
        from ${INCOMING} where (select version from current) = $1
         ${fromOutbox ? 'and t.id = any (array(select id from locked_rows))' : ''}
    ),
    won as (
      insert into posthorn.idempotency_keys as k (tenant, key, event_id, fingerprint, expires_at)
      select tenant, key, id, fingerprint, now() + make_interval(secs => $17::float8)
        from incoming where key is not null order by tenant, key
          on conflict (tenant, key) do update
         set event_id = excluded.event_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at
       where k.expires_at <= now() or k.event_id = excluded.event_id
      returning event_id
    ),
    accepted as (
      insert into posthorn.events (id, tenant, type, data, deliveries, idempotency_key, options)
      select id, tenant, type, substring($13::bytea from start for length), fanout, key, ($14::json -> n::text)
        from incoming where key is null or id = any (array(select event_id from won))
          on conflict (id) do nothing
      returning id
    ),${fromOutbox ? DELETE_OUTBOX_ROWS : ''}${VARIANTS[variant](fromOutbox ? 21 : 20)}
    queued as (
      insert into posthorn.queue (id, endpoint_id, due_at, ages_from, fifo, tenant, event_type${variant === 'sliced' ? ', seq' : ''})
      select d.id, d.endpoint_id, to_timestamp(d.due_at), to_timestamp(d.due_at), d.fifo, i.tenant, i.type${variant === 'sliced' ? ', r.seq' : ''}
        from ${FANOUT} join incoming i using (n) join accepted a on a.id = i.id ${variant === 'sliced' ? 'join reserved r using (n)' : ''}
       order by d.position
    ),
    -- Usually all events are new. If not, the statement counts the new ones itself.
    counted as (
      insert into posthorn.stats_journal (counts) select $18::text where (select count(*) from accepted) = $19
    ),
    counted_some as (${journalAccepted('incoming join accepted using (id) where (select count(*) from accepted) <> $19')}
    )
    select version, array(select id::text from accepted) as written from current`,
});
const GUARDED = {
  usual: guarded('accept_guarded', { fromOutbox: false, variant: 'usual' }),
  skipping: guarded('accept_guarded_skipping', { fromOutbox: false, variant: 'skipping' }),
  sliced: guarded('accept_guarded_sliced', { fromOutbox: false, variant: 'sliced' }),
};
const FROM_OUTBOX = {
  usual: guarded('accept_from_outbox', { fromOutbox: true, variant: 'usual' }),
  skipping: guarded('accept_from_outbox_skipping', { fromOutbox: true, variant: 'skipping' }),
  sliced: guarded('accept_from_outbox_sliced', { fromOutbox: true, variant: 'sliced' }),
};

export async function acceptEvents(
  pool: Pool,
  events: readonly EventRecord[],
  options: AppendOptions,
): Promise<AppendResult> {
  const { outboxSeqs } = options;
  const isSliced = events.some((event) => event.unwritten !== undefined);
  const isGuarded =
    isSliced ||
    outboxSeqs !== null ||
    options.mayBeStored ||
    events.some((event) => event.idempotencyKey !== null);
  const values = [
    options.endpointVersion,
    ...eventValues(events),
    ...deliveryValues(events),
    ...payloadValues(events),
  ];
  const skips = events.some(({ skipped }) => skipped.length > 0);
  const skippedValues = skips ? toSkippedValues(events) : [];
  if (!isGuarded) {
    const { rows } = await pool.query<{ version: string }>({
      ...(skips ? PLAIN_SKIPPING : PLAIN),
      values: [...values, journalOfAccepted(events), ...skippedValues],
    });
    return Number(rows[0]!.version) === options.endpointVersion
      ? { stale: false, written: 'all' }
      : { stale: true };
  }
  const { rows } = await pool.query<{ version: string; written: Uuid[] }>({
    ...(outboxSeqs === null ? GUARDED : FROM_OUTBOX)[isSliced ? 'sliced' : skips ? 'skipping' : 'usual'],
    values: [
      ...values,
      events.map((event) => event.idempotencyKey),
      events.map((event) => event.fingerprint),
      options.idempotencyTtlMs / 1000,
      journalOfAccepted(events),
      events.length,
      ...(outboxSeqs === null ? [] : [literal(outboxSeqs)]),
      ...(isSliced ? sliceValues(events) : skippedValues),
    ],
  });
  const answer = rows[0]!;
  return Number(answer.version) === options.endpointVersion
    ? { stale: false, written: new Set(answer.written) }
    : { stale: true };
}

/** Formats a PostgreSQL array of values that need no quoting: ids, numbers, validated names. */
const literal = (values: readonly (string | number | boolean)[]): string => `{${values.join(',')}}`;

function eventValues(events: readonly EventRecord[]): unknown[] {
  const starts: number[] = [];
  let start = 1;
  for (const event of events) {
    starts.push(start);
    start += event.data.length;
  }
  return [
    literal(events.map((event) => event.id)),
    literal(events.map((event) => `"${event.tenant}"`)),
    // Quoted, because NULL is a valid type.
    literal(events.map((event) => `"${event.type}"`)),
    literal(starts),
    literal(events.map((event) => event.data.length)),
    literal(events.map(countDeliveries)),
  ];
}

function deliveryValues(events: readonly EventRecord[]): unknown[] {
  const ids: string[] = [];
  const indexes: number[] = [];
  const endpoints: string[] = [];
  const due: (number | string)[] = [];
  const fifo: boolean[] = [];
  for (const [index, event] of events.entries()) {
    for (const delivery of event.deliveries) {
      ids.push(delivery.id);
      indexes.push(index + 1);
      endpoints.push(delivery.endpointId);
      due.push(delivery.dueAt === null ? 'null' : delivery.dueAt / 1000);
      fifo.push(delivery.fifo);
    }
  }
  return [literal(ids), literal(indexes), literal(endpoints), literal(due), literal(fifo)];
}

function sliceValues(events: readonly EventRecord[]): unknown[] {
  const slices = events.flatMap(({ deliveries, unwritten }, index) => {
    let firstOrdinal = deliveries.length;
    return (unwritten?.slices ?? []).map(({ endpointIds, ...slice }) => {
      const first = firstOrdinal;
      firstOrdinal += endpointIds.length;
      const { deliverAt } = unwritten!;
      return { ...slice, n: index + 1, firstOrdinal: first, endpointIds: literal(endpointIds), deliverAt };
    });
  });
  return [
    literal(slices.map(({ n }) => n)),
    literal(slices.map(({ firstOrdinal }) => firstOrdinal)),
    slices.map(({ endpointIds }) => endpointIds),
    literal(slices.map(({ hasFifo }) => hasFifo)),
    literal(slices.map(({ wasDisabled }) => wasDisabled)),
    literal(slices.map(({ deliverAt }) => (deliverAt === null ? 'null' : deliverAt / 1000))),
  ];
}

function toSkippedValues(events: readonly EventRecord[]): unknown[] {
  const rows = events.flatMap(({ skipped }, index) =>
    skipped.map(({ id, endpointId }) => ({ id, n: index + 1, endpointId })),
  );
  return [
    literal(rows.map(({ id }) => id)),
    literal(rows.map(({ n }) => n)),
    literal(rows.map(({ endpointId }) => endpointId)),
  ];
}

function payloadValues(events: readonly EventRecord[]): unknown[] {
  const options: Record<string, unknown> = {};
  for (const [index, event] of events.entries())
    if (event.options !== null) options[index + 1] = event.options;
  return [Buffer.concat(events.map((event) => event.data)), JSON.stringify(options)];
}

/** The database's clock. */
export async function databaseNow(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ now: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  );
  return rows[0]!.now;
}

// A separate statement, because the statement that lost the key cannot see the winning row in its snapshot.
const KEY_HOLDERS = {
  name: 'idempotency_key_holders',
  text: `
    select k.tenant, k.key, k.event_id, k.fingerprint, coalesce(e.deliveries, 0) as deliveries, e.type,
           e.options ->> 'unmatched_reason' as unmatched_reason
      from unnest($1::text[], $2::text[]) as wanted(tenant, key)
      join posthorn.idempotency_keys k using (tenant, key)
      left join posthorn.events e on e.id = k.event_id`,
};

export async function findKeyHolders(
  pool: Pool,
  wanted: readonly IdempotencyKey[],
): Promise<Map<string, KeyHolder>> {
  const { rows } = await pool.query<{
    tenant: string;
    key: string;
    event_id: Uuid;
    fingerprint: Buffer;
    deliveries: number;
    type: string;
    unmatched_reason: UnmatchedReason | null;
  }>({ ...KEY_HOLDERS, values: [wanted.map(({ tenant }) => tenant), wanted.map(({ key }) => key)] });
  return new Map(
    rows.map((row) => [
      idempotencyKeyName(row.tenant, row.key),
      {
        eventId: row.event_id,
        fingerprint: row.fingerprint,
        deliveries: row.deliveries,
        unmatchedReason: row.unmatched_reason,
        type: row.type,
      },
    ]),
  );
}
