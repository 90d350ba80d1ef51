-- A probe that somebody requested: the delivery that the owner of the lane sends next, even while the circuit is open. The
-- mark is the number of attempts so far, so it counts for one attempt and needs no clearing.
alter table posthorn.queue add column probe_after_attempts integer;

-- Finds all requested probes, and allows one per endpoint.
create unique index queue_probe on posthorn.queue (endpoint_id) where probe_after_attempts = attempts;
