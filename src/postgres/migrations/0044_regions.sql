-- Regions (docs/adr/0030-regions.md). A region has the 256 shards from number * 256 on. The default region has number 0 and no row.
create table posthorn.regions (
  number     smallint primary key check (number between 1 and 100),
  name       text not null unique check (name ~ '^[a-z][a-z0-9-]{0,31}$' and name <> 'default'),
  created_at timestamptz not null default now()
);

alter table posthorn.shards drop constraint shards_shard_check;
alter table posthorn.shards add constraint shards_shard_check check (shard between 0 and 101 * 256 - 1);

-- Whose shards it takes. Workers of earlier releases belong to the default region.
alter table posthorn.workers add column region smallint not null default 0;

alter table posthorn.endpoints
  add column shard        smallint,           -- where its lane is; null: in the default region
  add column wanted_shard smallint,           -- where its lane should be; null: in the default region
  add column placement    int not null default 0; -- counts the changes of both
create index endpoints_wanted_shard on posthorn.endpoints (wanted_shard) where wanted_shard is not null;

-- The shard of an endpoint in a region: the last byte of its id, within the region's shards.
create function posthorn.shard_in(region smallint, endpoint_id uuid) returns smallint
language sql immutable parallel safe set search_path = pg_catalog, pg_temp
return (region * 256 + get_byte(uuid_send(endpoint_id), 15))::smallint;

-- Workers of earlier releases do not know regions, and would send for endpoints that a worker of a region has. So there are
-- either such workers or regions. Both functions take the same lock: one of two that run at the same time sees the other.
create function posthorn.create_region(region_name text) returns smallint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  region smallint;
begin
  select number into region from posthorn.regions where name = region_name;
  if found then
    return region;
  end if;
  perform pg_advisory_xact_lock(7283640043);
  select number into region from posthorn.regions where name = region_name;
  if found then
    return region;
  end if;
  if exists (select from posthorn.workers where wire_version < 3) then
    raise exception 'a worker of an earlier release is registered, which does not know regions'
      using hint = 'Replace all nodes by this release first.';
  end if;
  select coalesce(max(number), 0) + 1 into region from posthorn.regions;
  if region > 100 then
    raise exception 'there are 100 regions already';
  end if;
  insert into posthorn.regions (number, name) values (region, region_name);
  insert into posthorn.shards (shard) select generate_series(region * 256, region * 256 + 255);
  return region;
end $$;

create function posthorn.refuse_earlier_worker() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  perform pg_advisory_xact_lock_shared(7283640043);
  if exists (select from posthorn.regions) then
    raise exception 'this deployment has regions, which this release of Posthorn does not know'
      using hint = 'Start a newer release.';
  end if;
  return new;
end $$;
create trigger refuse_earlier_worker before insert on posthorn.workers for each row
  when (new.wire_version < 3) execute function posthorn.refuse_earlier_worker();
revoke all on function posthorn.shard_in, posthorn.create_region, posthorn.refuse_earlier_worker from public;
