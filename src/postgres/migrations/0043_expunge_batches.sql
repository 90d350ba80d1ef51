-- Expunge (docs/retention.md#expunge). The answer to a batch is stored with every event of the batch, so expunging one event
-- must delete the answers of the others too. A tombstone of kind `batch` says so.
alter table posthorn.expunged drop constraint expunged_kind_check;
alter table posthorn.expunged add constraint expunged_kind_check check (kind in ('event', 'tenant', 'batch'));
alter table posthorn.expunged
  add column first_id     uuid,                -- of a batch: its deliveries have ids in this range
  add column last_id      uuid,
  -- Requests that were under way may be recorded late: upkeep looks for them until this time.
  add column settle_until timestamptz,
  -- Each time a tombstone is written or applied it gets the next number, so that no clock says what is newer.
  add column seq          bigint generated always as identity;
create index expunged_unapplied on posthorn.expunged (at) where applied_at is null;
create index expunged_settling on posthorn.expunged (settle_until) where settle_until is not null;
create index expunged_seq on posthorn.expunged (seq);

-- As in 0034, and answers to batches.
create or replace function posthorn.mark_stale_parts() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  operators text[];
begin
  if new.kind = 'event' then
    update posthorn.archive_parts p set stale_at = clock_timestamp()
     where p.kind in ('events', 'attempts') and p.min_id <= posthorn.last_delivery_id(new.id::uuid) and p.max_id >= new.id::uuid;
  elsif new.kind = 'batch' then
    update posthorn.archive_parts p set stale_at = clock_timestamp()
     where p.kind = 'attempts' and p.min_id <= new.last_id and p.max_id >= new.first_id;
  else
    -- Operational events about it belong to the tenant of the operator. Read once: there may be many endpoints and many files.
    operators := array(select distinct e.tenant from posthorn.endpoints e where e.config ->> 'operator' = 'true');
    update posthorn.archive_parts p set stale_at = clock_timestamp(), tenants = array_remove(p.tenants, new.id)
     where p.tenants is null or new.id = any (p.tenants)
        or (p.kind = 'events' and p.tenants && operators);
  end if;
  return null;
end $$;

-- Deletes copies of attempts that wait in a replacement of their partition (0030). Those that are still needed are copied again.
create function posthorn.expunge_copies_of_attempts(delivery_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  replacement text;
begin
  for replacement in select p.name from posthorn.partitions p where p.state = 'preparing' and p.parent = 'attempts' loop
    execute format('delete from posthorn.%I where delivery_id = any ($1)', replacement) using delivery_ids;
  end loop;
end $$;
revoke all on function posthorn.expunge_copies_of_attempts from public;

-- The tenant that a stored answer is about, whoever made the request. Null: none, or an earlier version stored it.
alter table posthorn.idempotent_requests add column tenant text;
create index idempotent_requests_tenant on posthorn.idempotent_requests (tenant) where tenant is not null;

-- The archive has a copy of the tombstones, which a restored backup reads. `tombstones_copied`: up to this number.
-- `tombstones_token`: the copy that this database wrote or read last.
alter table posthorn.archive_state
  add column tombstones_copied bigint not null default 0,
  add column tombstones_token  uuid;

-- How many dead letters retention discarded, by day (UTC).
create table posthorn.expired_dead_letters (
  day   date primary key,
  count bigint not null
);
