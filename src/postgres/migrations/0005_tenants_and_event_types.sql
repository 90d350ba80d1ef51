-- What an operator may say about a tenant. It still exists from its first use on, also if nobody says anything.
-- Times are whole milliseconds, which survive the way through JavaScript exactly: lists are paged by (created_at, id).
alter table posthorn.tenants alter column created_at set default date_trunc('milliseconds', now());
update posthorn.tenants set created_at = date_trunc('milliseconds', created_at);
alter table posthorn.tenants
  add column name              text not null default '',
  add column description       text not null default '',
  add column metadata          jsonb not null default '{}',
  add column ingest_per_second float8,         -- null: the limit of the configuration
  add column ingest_burst      float8,
  add column updated_at        timestamptz not null default now(),
  add constraint tenants_ingest_limit check ((ingest_per_second is null) = (ingest_burst is null));
create index tenants_created on posthorn.tenants (created_at, id);
insert into posthorn.tenants (id)
select distinct tenant from posthorn.api_keys where tenant is not null and revoked_at is null
    on conflict do nothing;

-- Keys that work, by tenant: whether it has any.
create index api_keys_tenant on posthorn.api_keys (tenant) where revoked_at is null;

-- The catalogue of the whole deployment. `json`, not `jsonb`: people get back what they wrote, in their order.
create table posthorn.event_types (
  name        text primary key,
  description text not null default '',
  schema      json,
  example     json,
  deprecated  boolean not null default false,
  created_at  timestamptz not null default date_trunc('milliseconds', now()),
  updated_at  timestamptz not null default now()
);
create index event_types_created on posthorn.event_types (created_at, name);
