-- Who changed what through the API, written with the change. The id is its time: old entries are a range of the
-- primary key. One index for each thing that people look for; changes are rare, so what they cost does not matter.
create table posthorn.audit_log (
  id          uuid primary key,
  tenant      text,                           -- null: of the deployment, not of one tenant
  actor       text not null,                  -- the key's id, or "admin" for the one of the configuration
  actor_name  text,                           -- the key's shown prefix
  scope       text not null,
  action      text not null,
  object_type text not null,
  object_id   text,
  request_id  text not null,
  address     text not null,
  changes     json not null default '[]'
);
create index audit_log_tenant on posthorn.audit_log (tenant, id);
create index audit_log_actor on posthorn.audit_log (actor, id);
create index audit_log_action on posthorn.audit_log (action, id);
create index audit_log_object on posthorn.audit_log (object_id, id);
