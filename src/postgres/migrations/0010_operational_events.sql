-- What happened that somebody may want to be told of, written by the statement that made it happen: either both are there
-- or neither is. Made into operational events, and deleted, a moment later.
create table posthorn.operational_notes (
  seq         bigint generated always as identity primary key,
  id          uuid unique,                    -- where the same statement may come twice; null elsewhere
  kind        text not null,                  -- the type of the event
  endpoint_id uuid not null,
  at          timestamptz not null default clock_timestamp(),
  detail      json
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- What has been told already: since when a level is passed or a circuit open, and when an endpoint's dead letters were
-- last told of.
create table posthorn.operational_state (
  kind    text not null,
  subject text not null,                      -- an endpoint, or '' for everything
  at      timestamptz not null default now(),
  primary key (kind, subject)
) with (fillfactor = 70);
