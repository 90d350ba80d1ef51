-- What happened, written by the commit that made it happen: one row a commit, whatever the number of events in it.
-- Every few seconds the rows are added up into the figures below and removed. So figures are exact, also after a
-- kill -9, and no commit ever waits for a row that another process is counting in. No key: it is only ever read whole.
create table posthorn.stats_journal (
  at     timestamptz not null default now(),
  counts text not null   -- JSON, checked by nobody but its reader: it is written with every commit
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0.5, autovacuum_vacuum_cost_delay = 0);
-- A statement of its own: PostgreSQL 15 does not take it within CREATE TABLE.
alter table posthorn.stats_journal alter column counts set storage external;

-- The figures of an endpoint, by the minute, the quarter of an hour and the hour.
drop index posthorn.endpoint_stats_hour;
alter table posthorn.endpoint_stats drop constraint endpoint_stats_pkey;
alter table posthorn.endpoint_stats rename column hour to at;
alter table posthorn.endpoint_stats rename column latency to response;
alter table posthorn.endpoint_stats
  add column seconds     int not null default 3600,          -- how long the time is that begins at `at`
  add column first_tries int not null default 0,             -- of the attempts: the first of their delivery
  add column delivery    int[] not null default '{}',        -- from acceptance to delivery, in the same buckets
  add column failed      boolean not null generated always as (failures > 0) stored;
-- Whatever has ended was tried a first time.
update posthorn.endpoint_stats set first_tries = least(attempts, delivered + dead);
alter table posthorn.endpoint_stats alter column seconds drop default, alter column first_tries drop default, alter column delivery drop default;
alter table posthorn.endpoint_stats add primary key (endpoint_id, seconds, at);
create index endpoint_stats_at on posthorn.endpoint_stats (seconds, at);
-- Finds the worst without looking at all the others. `failed` changes once at most, so rows are still updated in place.
create index endpoint_stats_failed on posthorn.endpoint_stats (seconds, at) where failed;

-- The same by tenant and event type. An empty name is all of them.
create table posthorn.event_stats (
  tenant      text not null,
  type        text not null,
  seconds     int not null,
  at          timestamptz not null,
  accepted    int not null,
  attempts    int not null,
  first_tries int not null,
  successes   int not null,
  failures    int not null,
  retried     int not null,
  delivered   int not null,
  dead        int not null,
  response    int[] not null,
  delivery    int[] not null,
  tries       int[] not null,
  primary key (tenant, seconds, at, type)
) with (fillfactor = 70);
create index event_stats_at on posthorn.event_stats (seconds, at);

-- Counting the circuits that are open must not read all that ever were.
create index endpoint_health_open on posthorn.endpoint_health (endpoint_id) where circuit <> 'closed';
