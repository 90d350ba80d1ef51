-- Rows of the journal that cannot be added up. They are out of the way of the others, and kept for whoever finds out why.
create table posthorn.stats_unreadable (
  at      timestamptz not null,
  counts  text not null,
  problem text not null
);
