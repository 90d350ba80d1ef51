-- With POSTHORN_BACKBONE=kafka, an idempotency key is claimed before its event is written to Kafka. It is claimed until the event is
-- stored here: the event may be in Kafka or not, so a repeated request writes it again, under the same id.
alter table posthorn.idempotency_keys add column claimed boolean not null default false;
