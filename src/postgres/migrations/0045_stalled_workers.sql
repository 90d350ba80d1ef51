-- Since when a worker that renews its lease cannot read deliveries or record results. Null: it can.
alter table posthorn.workers add column stalled_since timestamptz;
