-- When an event type as a whole is planned to end, as `event_type_versions` has it for one version.
alter table posthorn.event_types
  add column sunset_at       timestamptz,
  add column deprecated_at   timestamptz,      -- since when it is deprecated: the header `deprecation`
  add column sunset_noted_at timestamptz;      -- the sunset that an operational event has told of
-- The type was deprecated at its last change or earlier.
update posthorn.event_types set deprecated_at = updated_at where deprecated;
