-- Retention (docs/retention.md, docs/adr/0017-retention.md). An expired partition is replaced, not just dropped: rows that
-- something still needs are copied into a small table, which takes over the range of the old partition in one short
-- transaction. So every id keeps a partition, and every query works as before.
--
--   attached ──▶ detached ──▶ dropped          the expired partition
--   preparing (copy) ──▶ attached, kept        its replacement
alter table posthorn.partitions
  add column state          text not null default 'attached' check (state in ('preparing', 'attached', 'detached')),
  add column kept           boolean not null default false,    -- contains only rows that outlived their retention
  add column replaces       text[] not null default '{}',      -- of a replacement: the partitions whose range it takes over
  add column finished_since timestamptz,                       -- of a replacement: deliveries that ended later stay
  add column copied_at      timestamptz,                       -- of a replacement: when its rows were copied
  add column cleaned_at     timestamptz,                       -- when rows that nothing needs any more were deleted
  add column stripped_to    uuid,                              -- of events: payloads up to this one were deleted
  add column stripped_at    timestamptz;                       -- of events: when the last payload was deleted
alter table posthorn.partitions drop constraint partitions_parent_from_at_key;
create unique index partitions_attached on posthorn.partitions (parent, from_at) where state = 'attached';

create sequence posthorn.partition_number;

-- Rows that changed while they were copied into a replacement: they are copied again under the lock of the swap.
create table posthorn.partition_changes (
  replacement text not null,
  id          uuid not null                    -- of the event or delivery; of the attempt's delivery
);
create index partition_changes_replacement on posthorn.partition_changes (replacement);

-- The smallest id of a time: 48 bits of milliseconds, then zeros (UUIDv7).
create function posthorn.first_id_at(at timestamptz) returns uuid
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
  select rpad(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0'), 32, '0')::uuid
$$;

-- The event of a delivery, and the last id that a delivery of an event can have (src/domain/ids.ts): the version of the id
-- says how long its ordinal is. Without settings of their own, so that the planner can put their bodies in their place.
create function posthorn.event_of_delivery(id uuid) returns uuid language sql immutable parallel safe as $$
  select case substr(id::text, 15, 1) when '8' then left(id::text, 31) || '00000' else left(id::text, 32) || '0000' end::uuid
$$;
create function posthorn.last_delivery_id(event_id uuid) returns uuid language sql immutable parallel safe as $$
  select case substr(event_id::text, 15, 1) when '8' then left(event_id::text, 31) || 'fffff'
              else left(event_id::text, 32) || 'ffff' end::uuid
$$;

create function posthorn.note_partition_change() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  changed uuid;
begin
  if tg_argv[1] = 'attempts' then
    if tg_op = 'DELETE' then changed := old.delivery_id; else changed := new.delivery_id; end if;
  else
    if tg_op = 'DELETE' then changed := old.id; else changed := new.id; end if;
  end if;
  insert into posthorn.partition_changes (replacement, id) values (tg_argv[0], changed);
  return null;
end $$;

-- Step 1: creates the replacement of an expired partition, and from now on notes the rows of the partition that change.
-- A small kept partition right before it is replaced together with it, so that their number does not grow. Deliveries that
-- ended after `finished_since` stay, with their events and attempts. Returns the name of the replacement.
create function posthorn.prepare_partition_swap(partition_name text, finished_since timestamptz) returns text
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
  if exists (select from posthorn.partitions p where p.state = 'preparing' and partition_name = any (p.replaces)) then
    raise exception 'posthorn.prepare_partition_swap: "%" is being replaced', partition_name
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  replaces := array[old.name];
  select * into neighbour from posthorn.partitions p
   where p.parent = old.parent and p.state = 'attached' and p.kept and p.to_at = old.from_at
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

-- Copies the rows with these keys that are still needed. The parent is read: it still contains the old partitions.
create function posthorn.copy_kept_rows(replacement posthorn.partitions, ids uuid[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  if replacement.parent = 'events' then
    execute format('insert into posthorn.%I
      select e.* from posthorn.events e
       where e.id = any ($1)
         and (exists (select from posthorn.queue q where q.id between e.id and posthorn.last_delivery_id(e.id))
              or exists (select from posthorn.dead_letters d where d.id between e.id and posthorn.last_delivery_id(e.id))
              or exists (select from posthorn.deliveries h where h.id between e.id and posthorn.last_delivery_id(e.id))
              or exists (select from posthorn.fan_out_slices s where s.event_id = e.id))
          on conflict do nothing', replacement.name) using ids;
  elsif replacement.parent = 'attempts' then
    execute format('insert into posthorn.%I
      select a.* from posthorn.attempts a
       where a.delivery_id = any ($1)
         and (exists (select from posthorn.queue q where q.id = a.delivery_id)
              or exists (select from posthorn.dead_letters d where d.id = a.delivery_id)
              or exists (select from posthorn.deliveries h where h.id = a.delivery_id and h.finished_at >= $2))
          on conflict do nothing', replacement.name) using ids, replacement.finished_since;
  else
    execute format('insert into posthorn.%I
      select h.* from posthorn.deliveries h where h.id = any ($1) and h.finished_at >= $2
          on conflict do nothing', replacement.name) using ids, replacement.finished_since;
  end if;
end $$;

-- Step 2: copies a chunk of the rows that are still needed: those of deliveries that wait, are dead, or ended recently.
-- Returns the delivery to continue after. Null: all are copied. Starting again from the beginning is harmless.
create function posthorn.copy_partition_rows(replacement_name text, after uuid, max_rows int, max_bytes bigint default 67108864)
returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  replacement posthorn.partitions;
  first_id uuid;
  next_id uuid;
  scanned uuid[];
  needed uuid[];
  first_left_out uuid;
begin
  select * into replacement from posthorn.partitions p where p.name = replacement_name and p.state = 'preparing';
  if not found then
    raise exception 'posthorn.copy_partition_rows: there is no replacement "%"', replacement_name
      using errcode = 'invalid_parameter_value';
  end if;
  first_id := greatest(posthorn.first_id_at(replacement.from_at), after);
  next_id := posthorn.first_id_at(replacement.to_at);
  select coalesce(array_agg(id order by id), '{}'), coalesce(array_agg(id) filter (where is_needed), '{}')
    into scanned, needed
    from (select id, is_needed from (
            (select q.id, true as is_needed from posthorn.queue q
              where replacement.parent <> 'deliveries' and q.id > first_id and q.id < next_id order by q.id limit max_rows)
            union all
            (select d.id, true from posthorn.dead_letters d
              where replacement.parent <> 'deliveries' and d.id > first_id and d.id < next_id order by d.id limit max_rows)
            union all
            -- Deliveries of large fan-outs that are not written yet.
            (select s.event_id, true from posthorn.fan_out_slices s
              where replacement.parent = 'events' and s.event_id > first_id and s.event_id < next_id
              group by s.event_id order by s.event_id limit max_rows)
            union all
            -- The deliveries of an expired event are gone, but for those that ended recently: all that are left count.
            (select h.id, replacement.parent = 'events' or h.finished_at >= replacement.finished_since
               from posthorn.deliveries h where h.id > first_id and h.id < next_id order by h.id limit max_rows)
          ) as found order by id limit max_rows) as chunk;
  -- Payloads and responses may be large. A single one may exceed `max_bytes`.
  select id into first_left_out
    from (select id, sum(bytes) over (order by id) as total, row_number() over (order by id) as n
            from ((select distinct on (e.id) t.id, pg_column_size(e.data) as bytes
                     from unnest(needed) as t(id) join posthorn.events e on e.id = posthorn.event_of_delivery(t.id)
                    where replacement.parent = 'events' order by e.id, t.id)
                  union all
                  (select a.delivery_id, sum(pg_column_size(a.response_body))
                     from posthorn.attempts a
                    where replacement.parent = 'attempts' and a.delivery_id = any (needed) group by a.delivery_id)
                 ) as sizes) as sums
   where total > max_bytes and n > 1 order by id limit 1;
  if first_left_out is not null then
    scanned := array(select id from unnest(scanned) as t(id) where id < first_left_out order by id);
    needed := array(select id from unnest(needed) as t(id) where id < first_left_out);
  end if;
  perform posthorn.copy_kept_rows(replacement, case when replacement.parent = 'events'
    then array(select distinct posthorn.event_of_delivery(id) from unnest(needed) as t(id)) else needed end);
  if cardinality(scanned) < max_rows and first_left_out is null then
    update posthorn.partitions p set copied_at = now() where p.name = replacement_name;
    return null;
  end if;
  return scanned[cardinality(scanned)];
end $$;

-- Copies the rows again that changed since they were copied.
create function posthorn.apply_partition_changes(replacement posthorn.partitions) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
  changed uuid[];
begin
  with noted as (delete from posthorn.partition_changes c where c.replacement = apply_partition_changes.replacement.name returning c.id)
  select array_agg(distinct id) into changed from noted;
  if changed is null then return; end if;
  execute format('delete from posthorn.%I where %I = any ($1)', replacement.name,
                 case replacement.parent when 'attempts' then 'delivery_id' else 'id' end) using changed;
  perform posthorn.copy_kept_rows(replacement, changed);
end $$;

-- Step 3, without a lock: brings a replacement up to date, so that little is left to do under the lock.
create function posthorn.refresh_partition_swap(replacement_name text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  replacement posthorn.partitions;
begin
  select * into replacement from posthorn.partitions p
   where p.name = replacement_name and p.state = 'preparing' and p.copied_at is not null;
  if found then perform posthorn.apply_partition_changes(replacement); end if;
end $$;

-- Step 4: the swap. It locks the parent against everything, so the caller sets a short lock_timeout and tries again.
create function posthorn.finish_partition_swap(replacement_name text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  replacement posthorn.partitions;
  old text;
begin
  perform pg_advisory_xact_lock(7283640002);
  select * into replacement from posthorn.partitions p
   where p.name = replacement_name and p.state = 'preparing' and p.copied_at is not null;
  if not found then
    raise exception 'posthorn.finish_partition_swap: "%" is not ready', replacement_name
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  execute format('lock table only posthorn.%I in access exclusive mode', replacement.parent);
  -- Not one more wait: everything else waits for this transaction from here on.
  foreach old in array replacement.replaces loop
    execute format('lock table posthorn.%I in access exclusive mode nowait', old);
  end loop;
  perform posthorn.apply_partition_changes(replacement);
  foreach old in array replacement.replaces loop
    execute format('alter table posthorn.%I detach partition posthorn.%I', replacement.parent, old);
  end loop;
  update posthorn.partitions p set state = 'detached' where p.name = any (replacement.replaces);
  execute format('alter table posthorn.%I attach partition posthorn.%I for values from (%L) to (%L)', replacement.parent,
                 replacement.name, posthorn.first_id_at(replacement.from_at), posthorn.first_id_at(replacement.to_at));
  execute format('alter table posthorn.%I drop constraint partition_range', replacement.name);
  update posthorn.partitions p
     set state = 'attached', replaces = '{}', finished_since = null, cleaned_at = now() where p.name = replacement_name;
end $$;

-- Step 5: drops a partition that was replaced.
create function posthorn.drop_detached_partition(partition_name text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_name text;
begin
  delete from posthorn.partitions p where p.name = partition_name and p.state = 'detached' returning p.name into found_name;
  if found_name is null then
    raise exception 'posthorn.drop_detached_partition: there is no detached partition "%"', partition_name
      using errcode = 'invalid_parameter_value';
  end if;
  execute format('drop table posthorn.%I', found_name);
end $$;

revoke all on function posthorn.first_id_at, posthorn.event_of_delivery, posthorn.last_delivery_id,
  posthorn.note_partition_change, posthorn.prepare_partition_swap, posthorn.copy_kept_rows,
  posthorn.copy_partition_rows, posthorn.apply_partition_changes, posthorn.refresh_partition_swap,
  posthorn.finish_partition_swap, posthorn.drop_detached_partition from public;

-- How many days the events of a tenant are kept. Null: as long as everyone's.
alter table posthorn.tenants add column retention_days integer check (retention_days > 0);

-- Finds dead letters that have expired, where they do.
create index dead_letters_dead_at on posthorn.dead_letters (dead_at);
