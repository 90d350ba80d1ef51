-- Deliveries of large fan-outs that are accepted but not written yet (docs/adr/0015-large-fan-outs.md). The statement that
-- writes the deliveries of a slice deletes its row.
create table posthorn.fan_out_slices (
  event_id      uuid not null,
  first_ordinal int not null,                 -- the ordinal of the delivery to the first endpoint
  tenant        text not null,
  event_type    text not null,
  seq           bigint not null,              -- the acceptance number of the event, for FIFO endpoints
  endpoint_ids  uuid[] not null,
  has_fifo      boolean not null,             -- at least one of the endpoints was FIFO when the event was accepted
  was_disabled  boolean not null,             -- all of the endpoints were disabled when the event was accepted
  deliver_at    timestamptz,
  primary key (event_id, first_ordinal)
);
-- Tenants take turns; each tenant's slices are written in order.
create index fan_out_slices_turns on posthorn.fan_out_slices (tenant, seq, first_ordinal);
-- FIFO lanes of the tenant must not pass these slices.
create index fan_out_slices_fifo on posthorn.fan_out_slices (tenant, seq) where has_fifo;
