-- What lists need and the engine does not. Only rows that are rare are in these: a delivery that was delivered, which is
-- nearly every one, pays for a look at its status (docs/adr/0010).
create index deliveries_unusual on posthorn.deliveries (status, id) where status <> 'delivered';
create index deliveries_unusual_tenant on posthorn.deliveries (tenant, status, id) where status <> 'delivered';

-- The keys that work, newest first; those that were revoked stay in the table for good.
drop index posthorn.api_keys_tenant;
create index api_keys_tenant on posthorn.api_keys (tenant, id) where revoked_at is null;
create index api_keys_live on posthorn.api_keys (id) where revoked_at is null;
