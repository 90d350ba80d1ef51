-- Under which address each process can be reached by the processes of other nodes (docs/scale-out.md). A row is renewed every
-- two seconds and deleted 15 seconds after its process is gone.
create table posthorn.peers (
  id           uuid primary key,
  node         text not null,
  host         text not null,
  port         int not null,
  wire_version int not null,
  seen_at      timestamptz not null default now()
) with (fillfactor = 50);
