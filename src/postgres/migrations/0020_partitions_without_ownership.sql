-- A server may run as a role that owns nothing (docs/operate/roles.md). Making and dropping partitions needs the owner of
-- the table, so these two functions run as the owner. They touch nothing but partitions of the three tables.

-- Makes the partition of `parent` for [from_at, to_at). CREATE and then ATTACH: CREATE … PARTITION OF would lock the parent
-- against everything. Returns its name.
create function posthorn.create_partition(parent text, from_at timestamptz, to_at timestamptz) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  name text := parent || '_' || to_char(from_at at time zone 'UTC', 'YYYYMMDD');
  -- The smallest id of a time: 48 bits of milliseconds, then zeros (UUIDv7).
  first_id uuid := rpad(lpad(to_hex((extract(epoch from from_at) * 1000)::bigint), 12, '0'), 32, '0')::uuid;
  next_id uuid := rpad(lpad(to_hex((extract(epoch from to_at) * 1000)::bigint), 12, '0'), 32, '0')::uuid;
begin
  if parent is null or parent not in ('events', 'deliveries', 'attempts') then
    raise exception 'posthorn.create_partition: "%" has no partitions', parent using errcode = 'invalid_parameter_value';
  end if;
  if from_at is null or to_at is null or from_at >= to_at then
    raise exception 'posthorn.create_partition: % to % is no time', from_at, to_at using errcode = 'invalid_parameter_value';
  end if;
  -- They grow by millions of rows, and few of them change: what holds for half of the rows holds for all.
  execute format('create table posthorn.%I (like posthorn.%I including all) with (
                    autovacuum_analyze_threshold = 10000, autovacuum_analyze_scale_factor = 0.5,
                    autovacuum_vacuum_insert_threshold = 100000)', name, parent);
  execute format('alter table posthorn.%I attach partition posthorn.%I for values from (%L) to (%L)',
                 parent, name, first_id, next_id);
  insert into posthorn.partitions (name, parent, from_at, to_at) values (name, parent, from_at, to_at);
  return name;
end $$;

-- Drops a partition with all of its rows. Only one whose time ended more than a day ago.
create function posthorn.drop_partition(partition_name text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  found_name text;
begin
  delete from posthorn.partitions p where p.name = partition_name and p.to_at < now() - interval '1 day'
    returning p.name into found_name;
  if found_name is null then
    raise exception 'posthorn.drop_partition: there is no partition "%" whose time ended a day ago', partition_name
      using errcode = 'invalid_parameter_value';
  end if;
  execute format('drop table posthorn.%I', found_name);
end $$;

-- Nobody may call these unless told.
revoke all on function posthorn.create_partition, posthorn.drop_partition from public;
