-- The versions of an event type. `ordinal` is the order of creation. `json`, not `jsonb`: people get back what they wrote.
create table posthorn.event_type_versions (
  event_type  text not null references posthorn.event_types (name) on delete cascade,
  version     text not null,
  ordinal     int not null,
  description text not null default '',
  changelog   text not null default '',
  schema      json,
  example     json,
  status      text not null default 'active' check (status in ('draft', 'active', 'deprecated', 'retired')),
  sunset_at   timestamptz,
  created_at  timestamptz not null default date_trunc('milliseconds', now()),
  updated_at  timestamptz not null default now(),
  primary key (event_type, version),
  unique (event_type, ordinal)
);

-- How payloads are checked against the catalogue when they are accepted. A type without a mode uses its tenant's.
alter table posthorn.event_types
  add column validation text check (validation in ('off', 'warn', 'strict'));
alter table posthorn.tenants
  add column validation  text not null default 'off' check (validation in ('off', 'warn', 'strict')),
  add column api_version text;   -- the version that new endpoints of the tenant pin
create index tenants_validation on posthorn.tenants (id) where validation <> 'off';

-- A sample of recent payloads that did not match their schema. The event itself is flagged, too.
create table posthorn.schema_failures (
  id         uuid primary key,    -- begins with its time
  tenant     text not null,
  event_type text not null,
  version    text,                -- null: the type has no versions, or the catalogue does not have the type
  event_id   uuid,                -- null: the event was refused
  path       text not null,
  message    text not null
);
create index schema_failures_event_type on posthorn.schema_failures (event_type, id);
create index schema_failures_tenant on posthorn.schema_failures (tenant, id);
create index schema_failures_tenant_event_type on posthorn.schema_failures (tenant, event_type, id);
create index schema_failures_event on posthorn.schema_failures (event_id) where event_id is not null;
