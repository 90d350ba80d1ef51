-- The limits of an endpoint while it is consistently slow (DLV-3). Null: its configured ones.
alter table posthorn.endpoint_health add column adaptive jsonb;

-- Debounce: the newest and the oldest waiting deliveries of a key, and the chosen ones, without reading the whole group.
create index debounce_keys_order on posthorn.debounce_keys (endpoint_id, key, delivery_id);
create index debounce_keys_chosen on posthorn.debounce_keys (endpoint_id, key) where chosen;
drop index posthorn.debounce_keys_key;
