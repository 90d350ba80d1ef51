-- Kafka as a source of events (docs/kafka.md).

-- The partitions that Posthorn reads, and how far. The statement that stores the events of a partition also moves `position`,
-- so each record becomes an event exactly once.
create table posthorn.kafka_partitions (
  id            int generated always as identity primary key,
  cluster       text not null,
  topic         text not null,
  topic_id      text not null,                   -- another one after the topic was deleted and created again
  partition     int not null,
  position      bigint not null,                 -- the next offset to read
  done          bigint[] not null default '{}',  -- offsets above it that are stored already
  owner         uuid,                            -- in kafka_consumers
  epoch         bigint not null default 0,       -- grows with every change of ownership
  log_end       bigint,                          -- the end of the partition, as its owner last saw it
  paused_reason text,
  lost_records  bigint not null default 0,       -- deleted by Kafka before Posthorn read them
  created_at    timestamptz not null default now(),
  stored_at     timestamptz,
  seen_at       timestamptz,                     -- when Kafka last answered its owner
  unique (cluster, topic, topic_id, partition)
) with (fillfactor = 50);
create index kafka_partitions_owner on posthorn.kafka_partitions (owner);

-- Topics that did not exist when Posthorn first looked for them. They are read from their beginning when they do.
create table posthorn.kafka_awaited_topics (
  topic text primary key
);

-- The processes that read. A process that has not renewed its row for some seconds loses its partitions.
create table posthorn.kafka_consumers (
  id         uuid primary key,
  name       text not null,
  cluster    text not null,
  topic_ids  text[] not null,                    -- the topics that it reads
  renewed_at timestamptz not null
) with (fillfactor = 50);

-- Records that were set aside, so that nothing waits behind them: rejected ones, and those of tenants over their limit.
create table posthorn.kafka_records (
  seq           bigint generated always as identity primary key,
  id            uuid not null unique,            -- of the event that it becomes
  partition_id  int not null references posthorn.kafka_partitions,
  record_offset bigint not null,
  state         text not null check (state in ('waiting', 'rejected')),
  tenant        text,                            -- null: unknown
  key           bytea,
  value         bytea,
  headers       json not null,                   -- pairs of name and value, in base64
  recorded_at   timestamptz not null,            -- the time of the record
  parked_at     timestamptz not null default now(),
  reason        text,                            -- of a rejected one
  unique (partition_id, record_offset)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index kafka_records_waiting on posthorn.kafka_records (partition_id, seq) where state = 'waiting';
create index kafka_records_rejected on posthorn.kafka_records (seq) where state = 'rejected';
create index kafka_records_state on posthorn.kafka_records (partition_id, state); -- counts
create index kafka_records_tenant on posthorn.kafka_records (tenant);
