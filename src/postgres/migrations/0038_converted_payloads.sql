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
