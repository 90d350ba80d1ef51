-- Payloads as converters made them for endpoints that pin a version (docs/versions.md). Stored before they are sent, once per
-- event, version and state of the converters. An attempt names its row in the request header `posthorn-conversion`. Rows go
-- with the payload of their event.
create table posthorn.converted_payloads (
  event_id  uuid not null,
  version   text not null,                     -- what the payload was converted to
  converter text not null,                     -- hash of the converters
  data      bytea not null,
  primary key (event_id, version, converter)
);

alter table posthorn.event_type_versions
  add column deprecated_at   timestamptz,      -- since when it is deprecated or retired: the header `deprecation`
  add column sunset_noted_at timestamptz;      -- the sunset that an operational event has told of

-- As in 0031, and deletes what else is derived from payloads. Nodes of the previous release call it when they expunge, and know
-- neither of converted payloads nor of validation.
create or replace function posthorn.expunge_copies(event_ids uuid[]) returns void
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
  delete from posthorn.converted_payloads c where c.event_id = any (event_ids);
  delete from posthorn.schema_failures f where f.event_id = any (event_ids);
  update posthorn.events e set options = (e.options::jsonb - 'schema_errors')::json
   where e.id = any (event_ids) and e.data is null and e.options::jsonb ? 'schema_errors';
end $$;
