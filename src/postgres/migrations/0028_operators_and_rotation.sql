-- Only endpoints with "operator": true get the operational events of all tenants. Which tenant had this right before is a
-- setting, so the next start decides: null means undecided (mark-operator-endpoints.ts).
update posthorn.endpoints
   set config = jsonb_set(config, '{operator}', 'null')
 where deleted_at is null
   and exists (select from jsonb_array_elements_text(config->'events') as pattern where pattern like 'posthorn.%');

create index endpoints_undecided on posthorn.endpoints (tenant) where config->'operator' = 'null'::jsonb;

-- A signature that fits one secret only (profiles hex and github): from when on this secret signs the main header. Null:
-- when no older secret is left. And the signature setting that an older secret keeps, if the endpoint has another now.
alter table posthorn.endpoint_secrets
  add column main_from timestamptz,
  add column signature jsonb;

-- People who have signed in to the console with OpenID Connect. The token is only in their cookie.
create table posthorn.console_sessions (
  id         uuid primary key,
  hash       bytea not null unique,
  subject    text not null,               -- who the identity provider says it is
  name       text not null,
  scope      text not null check (scope in ('admin', 'tenant', 'read')),
  tenant     text,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  check (scope <> 'tenant' or tenant is not null),
  check (scope <> 'admin' or tenant is null)
);
create index console_sessions_expires on posthorn.console_sessions (expires_at);
