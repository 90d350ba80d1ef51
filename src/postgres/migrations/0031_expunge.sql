-- Expunge (docs/retention.md#expunge): what was deleted on request, by id and time only. It survives, so that a restore from an
-- archive or a backup can apply it again: a row without `applied_at` is still to be applied.
create table posthorn.expunged (
  kind         text not null check (kind in ('event', 'tenant')),
  id           text not null,                  -- of the event or the tenant
  at           timestamptz not null default now(),
  endpoint_ids uuid[] not null default '{}',   -- of a tenant: its endpoints, whose last results may be recorded late
  applied_at   timestamptz,
  primary key (kind, id)
);

-- While it is set, nothing new can be published or created for the tenant.
alter table posthorn.tenants add column expunging_at timestamptz;

alter table posthorn.tasks drop constraint tasks_kind_check;
alter table posthorn.tasks add constraint tasks_kind_check check (kind in ('replay', 'discard', 'expunge'));

create index tenants_expunging on posthorn.tenants (id) where expunging_at is not null;

create function posthorn.refuse_publish(tenant text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
  raise exception using errcode = 'PH409',
    message = format('the data of the tenant "%s" is being deleted', tenant),
    hint = 'Publish again when the deletion has ended.';
end $$;
revoke all on function posthorn.refuse_publish from public;

-- Refuses posthorn.publish for a tenant that is being expunged.
create function posthorn.refuse_expunged_tenant() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform posthorn.refuse_publish(t.id) from posthorn.tenants t where t.id = new.tenant and t.expunging_at is not null;
  return new;
end $$;
revoke all on function posthorn.refuse_expunged_tenant from public;
create trigger refuse_expunged_tenant before insert on posthorn.outbox
  for each row execute function posthorn.refuse_expunged_tenant();

-- Deletes copies of events and attempts that wait in a replacement of their partition (0030). The rows that are still needed
-- are copied again, because they changed too.
create function posthorn.expunge_copies(event_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  replacement record;
begin
  for replacement in
    select p.name, p.parent from posthorn.partitions p where p.state = 'preparing' and p.parent in ('events', 'attempts', 'deliveries')
  loop
    execute format('delete from posthorn.%I r using unnest($1) as e(id)
                     where r.%I between e.id and posthorn.last_delivery_id(e.id)', replacement.name,
                   case replacement.parent when 'attempts' then 'delivery_id' else 'id' end) using event_ids;
  end loop;
end $$;
revoke all on function posthorn.expunge_copies from public;
