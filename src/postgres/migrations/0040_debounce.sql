-- Debounce (docs/shaping.md). The keys of deliveries to endpoints with `debounce`, written before the deliveries themselves.
create table posthorn.debounce_keys (
  delivery_id uuid primary key,
  endpoint_id uuid not null,
  key         text not null,                   -- a hash of the value
  since       timestamptz not null,            -- when the first event was accepted that this one stands for
  debounced   int not null default 0,          -- how many deliveries it has superseded
  chosen      boolean not null default false   -- max_wait_ms is over: it is sent, whatever comes after it
);
create index debounce_keys_key on posthorn.debounce_keys (endpoint_id, key);

-- Mode `first`: the delivery that opened the window of a key.
create table posthorn.debounce_windows (
  endpoint_id uuid not null,
  key         text not null,
  first_id    uuid not null,
  until       timestamptz not null,
  primary key (endpoint_id, key)
);

-- Which delivery was sent instead of a skipped one.
create table posthorn.debounced (
  delivery_id uuid primary key,
  endpoint_id uuid not null,
  by_id       uuid not null
);
create index debounced_by on posthorn.debounced (by_id);
create index debounced_endpoint on posthorn.debounced (endpoint_id);
