-- A discarded delivery remembers what it was as a dead letter, so that discarding can be undone, and who discarded it
-- (`reason`) and why. Null for every other delivery, where it costs nothing.
alter table posthorn.deliveries add column discard jsonb;
alter table posthorn.deliveries add constraint deliveries_discard check (discard is null or status = 'discarded');

-- Since when an endpoint has been on, if it was ever off: what happened before is not held against it.
alter table posthorn.endpoints add column enabled_since timestamptz;

-- The events of a tenant, newest first. The only index on events besides the primary key.
create index events_tenant on posthorn.events (tenant, id);

-- Work over many deliveries, done in chunks by whichever worker claims it. `cursor` is the last delivery that was
-- dealt with: it moves on in the statement that deals with a chunk, so a chunk is done once or not at all.
create table posthorn.tasks (
  id           uuid primary key,
  kind         text not null check (kind in ('replay', 'discard')),
  state        text not null default 'queued' check (state in ('queued', 'running', 'done', 'cancelled', 'failed')),
  selection    jsonb not null,                -- which deliveries
  why          text,
  total        int not null,                  -- as counted when it was made, up to a limit; exact once it has ended
  done         int not null default 0,
  failed       int not null default 0,
  cursor       uuid,
  tenant       text,                          -- null: made by an admin for all tenants
  created_by   text not null,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  finished_at  timestamptz,
  runner       uuid,                          -- the process that works on it
  heartbeat_at timestamptz,                   -- when that process was last heard of: others take over if it falls silent
  error        text,
  check ((state in ('done', 'cancelled', 'failed')) = (finished_at is not null)),
  check (state <> 'failed' or error is not null)
) with (fillfactor = 50);
create index tasks_open on posthorn.tasks (updated_at) where state in ('queued', 'running');
create index tasks_tenant on posthorn.tasks (tenant, id);

-- How an endpoint did, hour by hour. Gathered in memory and added every few seconds, never per attempt.
create table posthorn.endpoint_stats (
  endpoint_id uuid not null,
  hour        timestamptz not null,
  attempts    int not null,
  successes   int not null,
  failures    int not null,
  retried     int not null,                   -- of the failures: those that will be tried again
  delivered   int not null,
  dead        int not null,
  latency     int[] not null,                 -- response times, counted in buckets on a logarithmic scale
  tries       int[] not null,                 -- how many were delivered at the first try, the second, …
  primary key (endpoint_id, hour)
) with (fillfactor = 70);
create index endpoint_stats_hour on posthorn.endpoint_stats (hour);
