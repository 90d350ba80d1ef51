-- A restore to an earlier time, or a failover to a standby that was behind, takes the version of the endpoints back. If it
-- only counted up, it would soon reach a number that processes already know, with other endpoints behind it. So each change
-- adds a random step of up to 2^24: two histories do not meet in the same number. (2^53, the limit of a JavaScript number,
-- is a billion changes away.)
--
-- The last 10,000 or so versions are kept. A process whose version is not among them knows another history, and reads all
-- endpoints again instead of those with a higher version.
create table posthorn.endpoint_versions (version bigint primary key);

-- A trigger, so that servers of the previous release take part. It runs as its owner: servers need no right on the table
-- but to read it.
create function posthorn.step_endpoint_version() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  new.version := old.version + 1 + floor(random() * 16777216)::bigint;
  insert into posthorn.endpoint_versions (version) values (new.version);
  delete from posthorn.endpoint_versions v where v.version < new.version - 10000 * 8388608::bigint;
  return new;
end $$;
revoke all on function posthorn.step_endpoint_version from public;

create trigger step_endpoint_version before update of version on posthorn.subscription_version
  for each row execute function posthorn.step_endpoint_version();

-- Not 1 in every new database.
update posthorn.subscription_version set version = version + 1;
