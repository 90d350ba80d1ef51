-- How many requests a second a key may make of one process. Null: the limit of the configuration.
alter table posthorn.api_keys
  add column rate_per_second float8,
  add column rate_burst      float8,
  add constraint api_keys_rate_limit check ((rate_per_second is null) = (rate_burst is null));
