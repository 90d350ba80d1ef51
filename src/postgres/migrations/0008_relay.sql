-- Databases that a relay reads from (docs/relay.md). Written by the relay every few seconds, read by everybody who shows it.
create table posthorn.relay_sources (
  name           text primary key,
  mode           text not null check (mode in ('poll', 'cdc')),
  first_seen_at  timestamptz not null default now(),
  reported_at    timestamptz not null default now(),
  lag_seconds    float8 not null default 0,      -- age of the oldest event that was not brought yet
  retained_bytes bigint,                         -- log that the source keeps for our slot
  confirmed_lsn  pg_lsn,                         -- everything before it is here
  accepted       bigint not null default 0,
  rejected       bigint not null default 0,
  problem        text,                           -- what is wrong just now
  needs_table    boolean not null default true,  -- the table is to be read before the log is followed
  lost_after     pg_lsn,                         -- the slot was lost once: messages without a row between these two are gone
  lost_before    pg_lsn,
  lost_at        timestamptz
) with (fillfactor = 50);

-- What a source committed and no event can be made of. Kept until somebody deletes it.
create table posthorn.relay_rejected (
  source      text not null,
  id          uuid not null,                     -- of the row, or made from the place in the log
  body        bytea not null,
  problem     text not null,
  rejected_at timestamptz not null default now(),
  primary key (source, id)
);
