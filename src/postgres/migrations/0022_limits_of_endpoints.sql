-- How many endpoints a tenant may have. Null: the default, which is a setting.
alter table posthorn.tenants add column max_endpoints integer check (max_endpoints >= 0);

-- Counts the endpoints of a tenant and finds those with the same URL. The digest keeps the index small: URLs may be long.
create index endpoints_tenant_url on posthorn.endpoints (tenant, md5(url)) where deleted_at is null;
