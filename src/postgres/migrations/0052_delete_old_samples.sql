-- The samples that ANALYZE took of these columns before migration 0051, which ANALYZE does not replace any more. A migration of its own:
-- PostgreSQL checks the rows of the outbox again, which must not hold up requests.
alter table posthorn.outbox alter column data type bytea, alter column fingerprint type bytea;
alter table posthorn.outbox_rejected alter column fingerprint type bytea;
alter table posthorn.kafka_records alter column key type bytea, alter column value type bytea;
alter table posthorn.notice_digests alter column items type jsonb;
alter table posthorn.schema_failures alter column path type text, alter column message type text;
alter table posthorn.idempotency_keys alter column fingerprint type bytea;
alter table posthorn.debounce_keys alter column key type text;
alter table posthorn.debounce_windows alter column key type text;
