-- Until when a receiver asked us to wait (`Retry-After` of a 429). A worker that takes the endpoint over must wait too.
alter table posthorn.endpoint_health add column hold_until timestamptz;
