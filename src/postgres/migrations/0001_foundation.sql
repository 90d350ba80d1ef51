-- Everything lives in its own schema, so that Posthorn can share a database with the application it serves.

-- One row. Every change of an endpoint raises it, in the same transaction. A batch of events reads it in its own
-- statement: if it is not the version the batch was matched against, nothing is written and the batch is matched
-- again. That is what makes the in-memory index of subscriptions never stale.
create table posthorn.subscription_version (
  singleton boolean primary key default true check (singleton),
  version   bigint not null
);
insert into posthorn.subscription_version (version) values (1);

create table posthorn.tenants (
  id         text primary key,
  created_at timestamptz not null default now()
);

create table posthorn.api_keys (
  id           uuid primary key,
  scope        text not null check (scope in ('admin', 'tenant', 'read')),
  tenant       text,
  description  text not null default '',
  prefix       text not null,                 -- the first characters, so that people can tell their keys apart
  hash         bytea not null unique,         -- sha256 of the key: it is random, so no salt or stretching is needed
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at   timestamptz,
  check (scope <> 'tenant' or tenant is not null),
  check (scope <> 'admin' or tenant is null)
);

create table posthorn.endpoints (
  id              uuid primary key,           -- its last byte is its shard
  tenant          text not null,
  url             text not null,
  description     text not null default '',
  config          jsonb not null default '{}', -- only what was set; defaults are filled in when it is read
  metadata        jsonb not null default '{}',
  enabled         boolean not null default true,
  disabled_reason text,
  paused          boolean not null default false,
  version         bigint not null,            -- subscription_version of its last change: what to reload
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  deleted_at      timestamptz,
  check (enabled = (disabled_reason is null))
);
create index endpoints_tenant on posthorn.endpoints (tenant, id);
create index endpoints_version on posthorn.endpoints (version);

create table posthorn.endpoint_secrets (
  id          uuid primary key,
  endpoint_id uuid not null references posthorn.endpoints (id),
  key_id      text not null,                  -- which encryption key
  ciphertext  bytea not null,
  created_at  timestamptz not null default now(),
  expires_at  timestamptz                     -- null: the current one
);
create index endpoint_secrets_endpoint on posthorn.endpoint_secrets (endpoint_id);

-- What must be remembered about an endpoint's health across restarts and owners. No row: never failed.
create table posthorn.endpoint_health (
  endpoint_id          uuid primary key,
  circuit              text not null check (circuit in ('closed', 'open', 'half_open')),
  consecutive_failures int not null,
  opened_at            timestamptz,
  cooldown_ms          bigint not null,
  next_probe_at        timestamptz,
  failing_since        timestamptz,           -- first failure since the last success
  updated_at           timestamptz not null default now(),
  check ((circuit = 'closed') = (opened_at is null)),
  check ((circuit = 'closed') = (next_probe_at is null))
);

-- Partitioned by id, whose leading bits are the time: an id finds its partition, and old ones go as a whole.
create table posthorn.events (
  id              uuid not null,
  tenant          text not null,
  type            text not null,
  data            bytea,                      -- the producer's own bytes; null once expunged
  deliveries      int not null,
  idempotency_key text,
  options         json,                       -- rarely used: channels, headers, schema_version, endpoint_ids, deliver_at
  primary key (id)
) partition by range (id);

create table posthorn.idempotency_keys (
  tenant      text not null,
  key         text not null,
  event_id    uuid not null,
  fingerprint bytea not null,                 -- sha256 of type and data: the same key for something else is a conflict
  expires_at  timestamptz not null,
  primary key (tenant, key)
);
create index idempotency_keys_expiry on posthorn.idempotency_keys (expires_at);

-- The order in which deliveries were accepted, as the database saw it: what "first" means for a FIFO endpoint.
create sequence posthorn.acceptance_order;

-- Deliveries that wait, and nothing else: small and hot. They move to dead_letters or deliveries when they end.
create table posthorn.queue (
  id                     uuid primary key,    -- the event's id with an ordinal in its last 16 bits
  endpoint_id            uuid not null,
  seq                    bigint not null default nextval('posthorn.acceptance_order'),
  due_at                 timestamptz,         -- null: due since it was accepted, never tried
  ages_from              timestamptz,         -- when its age began, if that is not when it was accepted: a replay
  started_at             timestamptz,         -- written before sending, where two at once may never be
  attempts               int not null default 0,
  attempts_before_replay int not null default 0,
  replays                int not null default 0,
  careful_starts         smallint not null default 0,
  fifo                   boolean not null default false,
  trigger                text not null default 'auto',
  last_status_code       smallint,
  last_error_class       text,
  tenant                 text not null,
  event_type             text not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_insert_scale_factor = 0.5, autovacuum_vacuum_cost_delay = 0);
alter sequence posthorn.acceptance_order owned by posthorn.queue.seq;

-- A row is in exactly one of the first two (FIFO ones stay in the first, whatever they wait for): a fresh delivery
-- pays for one, and the backlog of one kind never stands in the way of reading the other.
create index queue_fresh on posthorn.queue (endpoint_id, seq) where due_at is null or fifo;
create index queue_due on posthorn.queue (endpoint_id, due_at) where due_at is not null and not fifo;
create index queue_endpoint on posthorn.queue (endpoint_id, id);

-- Deliveries that ended well, or that ended without being dead.
create table posthorn.deliveries (
  id               uuid not null,
  endpoint_id      uuid not null,
  status           text not null check (status in ('delivered', 'discarded', 'skipped')),
  reason           text,
  attempts         int not null,
  replays          int not null,
  last_status_code smallint,
  last_error_class text,
  finished_at      timestamptz not null,
  tenant           text not null,
  event_type       text not null,
  primary key (id),
  check ((status = 'delivered') = (reason is null))
) partition by range (id);
create index deliveries_endpoint on posthorn.deliveries (endpoint_id, id);

-- A queue to act on, not a bin. A dead letter stays until its replay succeeded or somebody discarded it.
create table posthorn.dead_letters (
  id               uuid primary key,
  endpoint_id      uuid not null,
  reason           text not null check (reason in ('exhausted', 'rejected', 'gone', 'expired', 'worker_crash')),
  attempts         int not null,
  replays          int not null,
  replaying        boolean not null default false,
  blocks_lane      boolean not null default false, -- a FIFO endpoint with fifo_on_dead "block" waits for it
  last_status_code smallint,
  last_error_class text,
  dead_at          timestamptz not null,
  tenant           text not null,
  event_type       text not null
);
create index dead_letters_endpoint on posthorn.dead_letters (endpoint_id, id);
create index dead_letters_tenant on posthorn.dead_letters (tenant, id);

-- Partitioned by the delivery's id, not by their own: all attempts of a delivery, and all of an event, are one short
-- range of one partition.
create table posthorn.attempts (
  delivery_id        uuid not null,
  id                 uuid not null,           -- made by the worker, so that writing it twice is harmless
  number             int not null,
  started_at         timestamptz not null,
  duration_ms        int not null,
  dns_ms             int,
  connect_ms         int,
  tls_ms             int,
  first_byte_ms      int,
  status_code        smallint,
  outcome            text not null check (outcome in ('delivered', 'retry', 'dead', 'superseded')),
  error_class        text,
  error_message      text,
  url                text not null,
  request_headers    text not null,           -- JSON text
  response_headers   text,                    -- JSON text
  response_body      bytea,                   -- foreign bytes: never text
  response_truncated boolean not null,
  trigger            text not null,
  worker             text not null,
  primary key (delivery_id, id)
) partition by range (delivery_id);

-- What partitions there are. The catalogue knows too, but only as text.
create table posthorn.partitions (
  name    text primary key,
  parent  text not null,
  from_at timestamptz not null,
  to_at   timestamptz not null,
  unique (parent, from_at)
);

-- Who may send. A worker proves that it lives by renewing its row; others may take its shards when it has not.
create table posthorn.workers (
  id           uuid primary key,
  name         text not null,
  lock_key     bigint not null,               -- the session lock that vanishes with its process
  wire_version int not null,
  started_at   timestamptz not null default clock_timestamp(),
  renewed_at   timestamptz not null default clock_timestamp(),
  stopping     boolean not null default false
) with (fillfactor = 20);

create sequence posthorn.shard_epoch;
create table posthorn.shards (
  shard      smallint primary key check (shard between 0 and 255),
  owner      uuid,
  epoch      bigint not null default 0,
  unclean_at timestamptz[] not null default '{}' -- when it was last taken from a worker that had died
) with (fillfactor = 50);
insert into posthorn.shards (shard) select generate_series(0, 255);
