-- While an endpoint is disabled, matching events make deliveries that are skipped at once. The accept statement writes them
-- to history, and its journal entry counts them here later, so that no accept waits for a counter.
create table posthorn.endpoint_skips (
  endpoint_id  uuid primary key,
  total        bigint not null default 0,               -- all deliveries skipped because the endpoint was disabled
  total_before bigint not null default 0,               -- of these: before it was last disabled
  dropped      bigint not null default 0,               -- of these: deleted from history, beyond the limit or too old
  counted_from timestamptz not null default '-infinity' -- when it was last disabled
) with (fillfactor = 70);

-- Finds the skipped deliveries of an endpoint, to replay them and to delete those beyond the limit.
create index deliveries_skipped on posthorn.deliveries (endpoint_id, id) where status = 'skipped' and reason = 'endpoint_disabled';
