-- A portal session is a key for the people of one tenant. It always expires, and the list of keys does not show it.
alter table posthorn.api_keys
  add column is_portal_session boolean not null default false,
  add constraint api_keys_portal_session
    check (not is_portal_session or (scope = 'tenant' and scopes is not null and expires_at is not null));
create index api_keys_portal_sessions on posthorn.api_keys (expires_at) where is_portal_session;
