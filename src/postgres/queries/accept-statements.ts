/** The statements that store accepted events with their deliveries. See accept-events.ts for their parameters. */
import { IS_OWNED, LOCK_PARTITION, MOVE_POSITION, UNSTORED_OFFSETS } from './accept-from-kafka.ts';
import { trustedVersion } from './current-version.ts';
import { journalAccepted, journalSkipped } from './stats-journal.ts';

// The payloads of a batch are sent as one blob that is cut up here. As an array of bytea they would be sent in
// hexadecimal (31 instead of 10 µs per event). $5: where each payload starts, and where the last one ends.
const PAYLOAD = 'substring($13::bytea from ($5::int[])[n] for ($5::int[])[n + 1] - ($5::int[])[n])';
// $3 and $4 have each tenant and type of the batch once. $6 says for each event which of them it has. To find an element of an
// array of text, PostgreSQL reads all elements before it, which took 2 µs per event in a batch of 500.
const TENANT = '($3::text[])[($6::int[])[n]]';
const TYPE = '($4::text[])[($6::int[])[n]]';

/** Events with their options. With keys, also their idempotency keys and fingerprints. The arrays may be empty. */
const incoming = ({ withKeys }: { withKeys: boolean }): string => `
  (select *, ${TENANT} as tenant, ${TYPE} as type
     from unnest($2::uuid[], $7::int[], $14::text[]${withKeys ? ', $15::text[], $16::bytea[]' : ''})
          with ordinality as e(id, fanout, options${withKeys ? ', key, fingerprint' : ''}, n)) as t`;

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
      select k.id, k.endpoint_id, 'skipped', 'endpoint_disabled', 0, 0, now(), ${TENANT}, ${TYPE}
        from unnest($${firstParameter}::uuid[], $${firstParameter + 1}::int[], $${firstParameter + 2}::uuid[]) as k(id, n, endpoint_id)
        ${ofWritten}
      returning endpoint_id
    ),
    counted_skipped as (${journalSkipped('skipped')}
    ),`;

/**
 * How a statement checks that the events were matched with current endpoints: nothing has changed since, or no endpoint of
 * their tenants. The first check is cheaper and nearly always enough.
 */
export type VersionCheck = 'nothing_changed' | 'own_unchanged';
export const CHECKS: readonly VersionCheck[] = ['nothing_changed', 'own_unchanged'];
const SUFFIXES: Record<VersionCheck, string> = { nothing_changed: '', own_unchanged: '_own' };

// The function is called only for a tenant whose data is being deleted, and throws. The index of such tenants is empty.
const current = (check: VersionCheck, tenants = '$3::text[]'): string => `current as materialized (
      select ${check === 'nothing_changed' ? 'v.version' : trustedVersion(tenants)} as version
        from posthorn.subscription_version v
       where not exists (select from posthorn.tenants t
                          where t.expunging_at is not null and t.id = any (${tenants}) and posthorn.refuse_publish(t.id)))`;

// `#> '{}'` returns the options unchanged and rejects U+0000 in them, which the type json takes and jsonb does not.

// The usual case: no keys, first try. The statement that writes also reads the version, and a batch that was matched
// against older endpoints of its tenants writes nothing.
const plain = (check: VersionCheck, skips: boolean) => ({
  name: `accept_plain${skips ? '_skipping' : ''}${SUFFIXES[check]}`,
  text: `
    with ${current(check)},${
      skips ? skipping({ firstParameter: 16, ofWritten: 'where (select version from current) = $1' }) : ''
    }
    accepted as (
      insert into posthorn.events (id, tenant, type, data, deliveries, options)
      select id, tenant, type, ${PAYLOAD}, fanout, options::json #> '{}'
        from ${incoming({ withKeys: false })} where (select version from current) = $1
    ),
    queued as (
      insert into posthorn.queue (id, endpoint_id, due_at, ages_from, fifo, tenant, event_type)
      select id, endpoint_id, to_timestamp(due_at), to_timestamp(due_at), fifo, ${TENANT}, ${TYPE}
        from ${FANOUT} where (select version from current) = $1
    ),
    counted as (
      insert into posthorn.stats_journal (counts) select $15::text where (select version from current) = $1
    )
    select version from current`,
});

// The same for one event, which is the usual batch while few clients publish. For one event, taking the arrays of `plain`
// apart takes a sixth of its processor time. $2 to $7: id, tenant, type, payload, number of deliveries, options;
// $8 to $11: deliveries; $12: statistics.
const single = (check: VersionCheck): Statement => ({
  name: `accept_single${SUFFIXES[check]}`,
  text: `
    with ${current(check, 'array[$3::text]')},
    accepted as (
      insert into posthorn.events (id, tenant, type, data, deliveries, options)
      select $2::uuid, $3::text, $4::text, $5::bytea, $6::int, $7::json #> '{}' where (select version from current) = $1
    ),
    queued as (
      insert into posthorn.queue (id, endpoint_id, due_at, ages_from, fifo, tenant, event_type)
      select id, endpoint_id, to_timestamp(due_at), to_timestamp(due_at), fifo, $3, $4
        from unnest($8::uuid[], $9::uuid[], $10::float8[], $11::boolean[]) as d(id, endpoint_id, due_at, fifo)
       where (select version from current) = $1
    ),
    counted as (
      insert into posthorn.stats_journal (counts) select $12::text where (select version from current) = $1
    )
    select version from current`,
});

export interface Statement {
  readonly name: string;
  readonly text: string;
}
// Locks the outbox rows before anything is written for them: a row that another process has stored meanwhile no longer
// exists, and must not take the key. The statement deletes the rows, so each becomes an event exactly once. A row that
// loses its idempotency key stays and is stored without the key later.
const lockOutboxRows = (from: 'outbox' | 'parked'): string => `
    locked_rows as materialized (
      select o.seq, o.id from posthorn.${TABLES[from]} o
       where o.seq = any ($20::bigint[]) ${from === 'parked' ? "and o.state = 'waiting'" : ''}
         and (select version from current) = $1 order by o.seq for update
    ),`;
/** Parked Kafka records are stored like rows of the outbox. */
const TABLES = { outbox: 'outbox', parked: 'kafka_records' } as const;
// Not a join: the planner cannot estimate the number of rows, and scanned the whole backlog for each.
const deleteOutboxRows = (from: 'outbox' | 'parked'): string => `
    deleted_rows as (
      delete from posthorn.${TABLES[from]} where seq = any (array(
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

/** Where the events of a guarded statement come from, and how many parameters describe it. */
export type Origin = 'requests' | 'outbox' | 'parked' | 'partition';
const ORIGIN_PARAMETERS: Record<Origin, number> = { requests: 0, outbox: 1, parked: 1, partition: 5 };

const lockOrigin = (from: Origin): string => {
  if (from === 'requests') return '';
  return from === 'partition' ? LOCK_PARTITION : lockOutboxRows(from);
};
const ofOrigin = (from: Origin): string => {
  if (from === 'requests') return '';
  return from === 'partition' ? UNSTORED_OFFSETS : 'and t.id = any (array(select id from locked_rows))';
};
const finishOrigin = (from: Origin): string => {
  if (from === 'requests') return '';
  return from === 'partition' ? MOVE_POSITION : deleteOutboxRows(from);
};

/**
 * After a restore of a backup, the outbox and Kafka may contain events again that were expunged after the backup. Applying a
 * tombstone does not find an event that arrives later. So an event with a tombstone is not inserted, and its row or record counts as
 * stored. It takes its idempotency key, so that a repeated request is refused, but with a random hash instead of that of its payload.
 */
const findExpunged = (from: Origin): string =>
  from === 'requests'
    ? ''
    : `
    gone as materialized (
      select i.id from incoming i join posthorn.expunged x on x.kind = 'event' and x.id = i.id::text
    ),`;
const notExpunged = (from: Origin): string =>
  from === 'requests' ? '' : 'and id <> all (array(select id from gone))';
const fingerprintOf = (from: Origin): string =>
  from === 'requests'
    ? 'fingerprint'
    : 'case when id = any (array(select id from gone)) then sha256(uuid_send(gen_random_uuid())) else fingerprint end';

export type Variant = 'usual' | 'skipping' | 'sliced';

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

const STATEMENT_NAMES: Record<Origin, string> = {
  requests: 'accept_guarded',
  outbox: 'accept_from_outbox',
  parked: 'accept_parked_records',
  partition: 'accept_from_kafka',
};

// For events with idempotency keys, or if an earlier try may have been committed. $17 has three times in seconds: how long a key is
// kept; the process's time, from which on it is kept unless the database's time is later; and a limit: a key counts as expired only if
// it expired before both this limit and the database's time. Keys are sorted, or two batches with two keys in common could deadlock.
// The statement takes over an expired key. A key that an earlier try of the same event took counts as won. The statement also takes
// over a key that is only claimed (claim-keys.ts), because its event may never arrive. If it does, it counts as a repetition of this one.
// Deliveries are written only for events that this statement writes: those of an earlier try may be delivered already.
// An event with unwritten deliveries is alone in its batch ("sliced"): all its deliveries share one acceptance number.
const guarded = (check: VersionCheck, from: Origin, variant: Variant): Statement => ({
  name: `${STATEMENT_NAMES[from]}${variant === 'usual' ? '' : `_${variant}`}${SUFFIXES[check]}`,
  text: `
    with ${current(check)},${lockOrigin(from)}
    incoming as materialized (
      select * from ${incoming({ withKeys: true })} where (select version from current) = $1
         ${ofOrigin(from)}
    ),${findExpunged(from)}
    won as (
      insert into posthorn.idempotency_keys as k (tenant, key, event_id, fingerprint, expires_at)
      select tenant, key, id, ${fingerprintOf(from)}, greatest(now(), to_timestamp(($17::float8[])[2])) + make_interval(secs => ($17::float8[])[1])
        from incoming where key is not null order by tenant, key
          on conflict (tenant, key) do update
         set event_id = excluded.event_id, fingerprint = excluded.fingerprint, expires_at = excluded.expires_at, claimed = false
       where k.expires_at <= least(now(), to_timestamp(($17::float8[])[3])) or k.event_id = excluded.event_id or k.claimed
      returning event_id
    ),
    accepted as (
      insert into posthorn.events (id, tenant, type, data, deliveries, idempotency_key, options)
      select id, tenant, type, ${PAYLOAD}, fanout, key, options::json #> '{}'
        from incoming where (key is null or id = any (array(select event_id from won))) ${notExpunged(from)}
          on conflict (id) do nothing
      returning id
    ),${finishOrigin(from)}${VARIANTS[variant](20 + ORIGIN_PARAMETERS[from])}
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
    select version, array(select id::text from accepted) as written${from === 'partition' ? IS_OWNED : ''} from current`,
});
const allVariants = (check: VersionCheck, from: Origin): Record<Variant, Statement> => ({
  usual: guarded(check, from, 'usual'),
  skipping: guarded(check, from, 'skipping'),
  sliced: guarded(check, from, 'sliced'),
});
const allOrigins = (check: VersionCheck): Record<Origin, Record<Variant, Statement>> => ({
  requests: allVariants(check, 'requests'),
  outbox: allVariants(check, 'outbox'),
  parked: allVariants(check, 'parked'),
  partition: allVariants(check, 'partition'),
});
const GUARDED: Record<VersionCheck, Record<Origin, Record<Variant, Statement>>> = {
  nothing_changed: allOrigins('nothing_changed'),
  own_unchanged: allOrigins('own_unchanged'),
};

const allPlain = (check: VersionCheck): Record<Exclude<Variant, 'sliced'>, Statement> => ({
  usual: plain(check, false),
  skipping: plain(check, true),
});
const PLAIN = { nothing_changed: allPlain('nothing_changed'), own_unchanged: allPlain('own_unchanged') };

const SINGLE: Record<VersionCheck, Statement> = {
  nothing_changed: single('nothing_changed'),
  own_unchanged: single('own_unchanged'),
};

/** The statement for one event without a key and without skipped deliveries that no earlier try can have stored. */
export const singleStatement = (check: VersionCheck): Statement => SINGLE[check];

/** The statement for events without keys that no earlier try can have stored. */
export const plainStatement = (check: VersionCheck, skips: boolean): Statement =>
  PLAIN[check][skips ? 'skipping' : 'usual'];

export const guardedStatement = (check: VersionCheck, from: Origin, variant: Variant): Statement =>
  GUARDED[check][from][variant];
