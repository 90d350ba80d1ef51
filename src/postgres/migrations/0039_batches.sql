-- Batches: one request with several events (docs/adr/0024-batches.md). The composition of a batch is recorded before its
-- request is sent, and never changes.
create table posthorn.batches (
  id           uuid primary key,
  endpoint_id  uuid not null,
  delivery_ids uuid[] not null                 -- in the order of the body
);
create index batches_endpoint on posthorn.batches (endpoint_id, id);

-- Batches whose request may be on the wire: at most max_in_flight per endpoint, unless a worker died.
create table posthorn.open_batches (
  id           uuid primary key,
  endpoint_id  uuid not null,
  started_at   timestamptz not null
);
create index open_batches_endpoint on posthorn.open_batches (endpoint_id);

-- The batch that a retry belongs to. Null: the next batch may take it.
alter table posthorn.queue add column batch_id uuid;
create index queue_batch on posthorn.queue (batch_id) where batch_id is not null;
