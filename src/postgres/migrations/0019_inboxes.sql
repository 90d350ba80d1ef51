-- Inboxes survive a restart, and every process of a node sees the same ones. They were in memory: after a restart the
-- endpoints that delivered to them got 404, and their deliveries became dead letters.
create table posthorn.inboxes (
  token      text primary key,                -- whoever knows it can send to the inbox
  tenant     text not null references posthorn.tenants (id) on delete cascade,
  answer     jsonb not null,                  -- status, delay_ms, reset
  received   bigint not null default 0,       -- all requests, also those that are no longer stored
  created_at timestamptz not null,
  expires_at timestamptz not null             -- moves with every use; see src/postgres/queries/inboxes.ts
);
create index inboxes_tenant on posthorn.inboxes (tenant);

create table posthorn.inbox_requests (
  token       text not null references posthorn.inboxes (token) on delete cascade,
  number      bigint not null,                -- counts from 1 in each inbox
  received_at timestamptz not null,
  method      text not null,
  path        text not null,
  headers     json not null,                  -- json keeps the order in which they came
  body        bytea not null,
  truncated   boolean not null,
  verdict     text not null check (verdict in ('valid', 'invalid', 'unknown')),
  detail      text not null,
  answered    jsonb not null,
  bytes       int not null,                   -- of path, headers and body
  primary key (token, number)
);
create index inbox_requests_age on posthorn.inbox_requests (received_at);
