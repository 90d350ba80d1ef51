-- What narrows a key. Null: everything that its scope allows, for ever, from anywhere.
alter table posthorn.api_keys
  add column scopes      text[] check (cardinality(scopes) > 0),
  add column expires_at  timestamptz,
  add column allowed_ips text[] check (cardinality(allowed_ips) > 0);
