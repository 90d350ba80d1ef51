-- Archive (docs/retention.md#archive): before a partition is dropped, its rows are exported to Parquet
-- files. Each state is one commit:
--
--   requested ──▶ parts recorded, one by one ──▶ verified ──▶ the partition may be dropped
create table posthorn.archived_partitions (
  partition    text primary key,
  parent       text not null check (parent in ('events', 'deliveries', 'attempts')),
  from_at      timestamptz not null,
  to_at        timestamptz not null,
  rows         bigint,
  requested_at timestamptz not null default now(),
  verified_at  timestamptz
);

-- A file of the archive that was written, read back and compared.
create table posthorn.archive_parts (
  kind        text not null check (kind in ('events', 'deliveries', 'attempts')),
  day         date not null,
  part        integer not null check (part >= 0),
  partition   text not null,
  archive     text not null,                   -- the URL of the archive
  rows        bigint not null,
  bytes       bigint not null,
  sha256      text not null,                   -- of the file
  rows_sha256 text not null,                   -- of the values in it
  min_id      uuid,                            -- of the event or delivery; of the attempt's delivery
  max_id      uuid,
  tenants     text[],                          -- null: too many to list
  written_at  timestamptz not null default now(),
  stale_at    timestamptz,                     -- it contains something that was expunged at this time: it must be rewritten
  primary key (kind, day, part)
);
create index archive_parts_partition on posthorn.archive_parts (partition);
create index archive_parts_stale on posthorn.archive_parts (stale_at) where stale_at is not null;

-- Which deployment an archive belongs to, and why it cannot be written.
create table posthorn.archive_state (
  is_only       boolean primary key default true check (is_only),
  deployment_id uuid not null default gen_random_uuid(),
  -- Set by every server that has an archive: no server may drop a partition that is not archived, whatever its own settings
  -- are. `posthorn archive off` clears it.
  is_required   boolean not null default false,
  failed_at     timestamptz,
  partition     text,
  error         text
);
insert into posthorn.archive_state default values;

-- Rows that were restored from the archive. Retention leaves them alone until then.
create table posthorn.restored_ranges (
  first_id uuid not null,
  last_id  uuid not null,
  until    timestamptz not null,
  primary key (first_id, last_id)
);

-- Archived copies of what is expunged must be rewritten.
create function posthorn.mark_stale_parts() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  operators text[];
begin
  if new.kind = 'event' then
    update posthorn.archive_parts p set stale_at = clock_timestamp()
     where p.kind in ('events', 'attempts') and p.min_id <= posthorn.last_delivery_id(new.id::uuid) and p.max_id >= new.id::uuid;
  else
    -- Operational events about it belong to the tenant of the operator. Read once: there may be many endpoints and many files.
    operators := array(select distinct e.tenant from posthorn.endpoints e where e.config ->> 'operator' = 'true');
    update posthorn.archive_parts p set stale_at = clock_timestamp(), tenants = array_remove(p.tenants, new.id)
     where p.tenants is null or new.id = any (p.tenants)
        or (p.kind = 'events' and p.tenants && operators);
  end if;
  return null;
end $$;
revoke all on function posthorn.mark_stale_parts from public;
create trigger mark_stale_parts after insert on posthorn.expunged for each row execute function posthorn.mark_stale_parts();
create trigger mark_stale_parts_again after update of at on posthorn.expunged for each row
  when (new.at is distinct from old.at) execute function posthorn.mark_stale_parts();

alter table posthorn.tasks drop constraint tasks_kind_check;
alter table posthorn.tasks add constraint tasks_kind_check check (kind in ('replay', 'discard', 'expunge', 'archive', 'restore'));

-- As in 0030, but what must be archived first stays, restored rows stay, and a kept partition that contains some is not replaced together with its neighbour.
create or replace function posthorn.prepare_partition_swap(partition_name text, finished_since timestamptz) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  old posthorn.partitions;
  neighbour posthorn.partitions;
  name text;
  replaced text;
  replaces text[];
  key text;
begin
  perform pg_advisory_xact_lock(7283640002);
  select * into old from posthorn.partitions p
   where p.name = partition_name and p.state = 'attached' and not p.kept and p.to_at < now() - interval '1 day';
  if not found then
    raise exception 'posthorn.prepare_partition_swap: there is no partition "%" whose time ended a day ago', partition_name
      using errcode = 'invalid_parameter_value';
  end if;
  -- An event can be needed by any delivery in the history. Deliveries must go first.
  if old.parent = 'events' and exists (
    select from posthorn.partitions d
     where d.parent = 'deliveries' and d.state = 'attached' and not d.kept and d.from_at < old.to_at and d.to_at > old.from_at
  ) then
    raise exception 'posthorn.prepare_partition_swap: the deliveries of "%" are not expired', partition_name
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  -- Attempts do not know their tenant. Without their events they would be archived without it, and no expunge would find them.
  if old.parent = 'events' and exists (select from posthorn.archive_state s where s.is_required) and exists (
    select from posthorn.partitions a
     where a.parent = 'attempts' and a.state = 'attached' and not a.kept and a.from_at < old.to_at and a.to_at > old.from_at
  ) then
    raise exception 'posthorn.prepare_partition_swap: the attempts of "%" are not archived', partition_name
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  if exists (select from posthorn.archive_state s where s.is_required)
     and not exists (select from posthorn.archived_partitions a where a.partition = old.name and a.verified_at is not null) then
    raise exception 'posthorn.prepare_partition_swap: "%" is not archived', partition_name
      using errcode = 'object_not_in_prerequisite_state',
            hint = 'Set POSTHORN_ARCHIVE_URL on every server. To delete without an archive, run `posthorn archive off`.';
  end if;
  if exists (select from posthorn.partitions p where p.state = 'preparing' and partition_name = any (p.replaces)) then
    raise exception 'posthorn.prepare_partition_swap: "%" is being replaced', partition_name
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  replaces := array[old.name];
  select * into neighbour from posthorn.partitions p
   where p.parent = old.parent and p.state = 'attached' and p.kept and p.to_at = old.from_at
     and not exists (select from posthorn.restored_ranges r
                      where r.until > now() and r.first_id < posthorn.first_id_at(p.to_at) and r.last_id >= posthorn.first_id_at(p.from_at))
     and pg_total_relation_size(format('posthorn.%I', p.name)::regclass) < 64 * 1024 * 1024;
  if found then replaces := replaces || neighbour.name; end if;

  key := case old.parent when 'attempts' then 'delivery_id' else 'id' end;
  name := old.parent || '_kept_' || nextval('posthorn.partition_number');
  -- The constraint spares ATTACH the scan that checks the range.
  execute format('create table posthorn.%I (like posthorn.%I including all,
                    constraint partition_range check (%I >= %L and %I < %L))',
                 name, old.parent, key, posthorn.first_id_at(coalesce(neighbour.from_at, old.from_at)),
                 key, posthorn.first_id_at(old.to_at));
  foreach replaced in array replaces loop
    execute format('create trigger note_partition_change after insert or update or delete on posthorn.%I
                      for each row execute function posthorn.note_partition_change(%L, %L)', replaced, name, old.parent);
  end loop;
  insert into posthorn.partitions (name, parent, from_at, to_at, state, kept, replaces, finished_since)
  values (name, old.parent, coalesce(neighbour.from_at, old.from_at), old.to_at, 'preparing', true, replaces,
          prepare_partition_swap.finished_since);
  return name;
end $$;

create or replace function posthorn.copy_kept_rows(replacement posthorn.partitions, ids uuid[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if replacement.parent = 'events' then
    execute format('insert into posthorn.%I
      select e.* from posthorn.events e
       where e.id = any ($1)
         and (exists (select from posthorn.queue q where q.id between e.id and posthorn.last_delivery_id(e.id))
              or exists (select from posthorn.dead_letters d where d.id between e.id and posthorn.last_delivery_id(e.id))
              or exists (select from posthorn.deliveries h where h.id between e.id and posthorn.last_delivery_id(e.id))
              or exists (select from posthorn.fan_out_slices s where s.event_id = e.id)
              or exists (select from posthorn.restored_ranges r where e.id between r.first_id and r.last_id and r.until > now()))
          on conflict do nothing', replacement.name) using ids;
  elsif replacement.parent = 'attempts' then
    execute format('insert into posthorn.%I
      select a.* from posthorn.attempts a
       where a.delivery_id = any ($1)
         and (exists (select from posthorn.queue q where q.id = a.delivery_id)
              or exists (select from posthorn.dead_letters d where d.id = a.delivery_id)
              or exists (select from posthorn.deliveries h where h.id = a.delivery_id and h.finished_at >= $2)
              or exists (select from posthorn.restored_ranges r where a.delivery_id between r.first_id and r.last_id and r.until > now()))
          on conflict do nothing', replacement.name) using ids, replacement.finished_since;
  else
    execute format('insert into posthorn.%I
      select h.* from posthorn.deliveries h where h.id = any ($1) and (h.finished_at >= $2
         or exists (select from posthorn.restored_ranges r where h.id between r.first_id and r.last_id and r.until > now()))
          on conflict do nothing', replacement.name) using ids, replacement.finished_since;
  end if;
end $$;
