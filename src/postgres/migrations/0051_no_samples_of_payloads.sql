-- ANALYZE keeps samples of the values of a column in pg_statistic, where an expunge cannot delete them
-- (docs/retention.md#expunge). No plan depends on statistics of payloads, headers and answers, so ANALYZE leaves them out.
alter table posthorn.events alter column data set statistics 0;
alter table posthorn.attempts
  alter column request_headers set statistics 0,
  alter column response_headers set statistics 0,
  alter column response_body set statistics 0,
  alter column error_message set statistics 0;
alter table posthorn.converted_payloads alter column data set statistics 0;
alter table posthorn.inbox_requests
  alter column path set statistics 0,
  alter column body set statistics 0,
  alter column detail set statistics 0,
  alter column answered set statistics 0;
alter table posthorn.outbox alter column data set statistics 0, alter column fingerprint set statistics 0;
alter table posthorn.outbox_rejected alter column data set statistics 0, alter column fingerprint set statistics 0;
alter table posthorn.kafka_records alter column key set statistics 0, alter column value set statistics 0;
alter table posthorn.relay_rejected alter column body set statistics 0;
alter table posthorn.notice_digests alter column items set statistics 0;
alter table posthorn.schema_failures alter column path set statistics 0, alter column message set statistics 0;
-- Hashes of payloads.
alter table posthorn.idempotency_keys alter column fingerprint set statistics 0;
alter table posthorn.debounce_keys alter column key set statistics 0;
alter table posthorn.debounce_windows alter column key set statistics 0;

-- A new partition does not inherit this from its parent.
create function posthorn.skip_samples() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  name text;
begin
  for name in
    select a.attname from pg_attribute a
     where a.attrelid = format('posthorn.%I', new.name)::regclass
       and a.attname in ('data', 'request_headers', 'response_headers', 'response_body', 'error_message')
  loop
    execute format('alter table posthorn.%I alter column %I set statistics 0', new.name, name);
  end loop;
  return null;
end $$;
revoke all on function posthorn.skip_samples from public;
create trigger skip_samples after insert on posthorn.partitions for each row execute function posthorn.skip_samples();

-- Neither does a replacement of a partition that was being prepared, when it is attached.
do $$
declare
  found record;
begin
  for found in
    select p.name, a.attname, format_type(a.atttypid, a.atttypmod) as type
      from posthorn.partitions p
      join pg_catalog.pg_attribute a on a.attrelid = format('posthorn.%I', p.name)::regclass
     where p.state = 'preparing' and a.attname in ('data', 'request_headers', 'response_headers', 'response_body', 'error_message')
  loop
    execute format('alter table posthorn.%I alter column %I set statistics 0', found.name, found.attname);
    execute format('alter table posthorn.%I alter column %I type %s', found.name, found.attname, found.type);
  end loop;
end $$;

-- Setting the type that a column has deletes its samples and rewrites nothing.
alter table posthorn.events alter column data type bytea;
alter table posthorn.attempts
  alter column request_headers type text,
  alter column response_headers type text,
  alter column response_body type bytea,
  alter column error_message type text;
alter table posthorn.converted_payloads alter column data type bytea;
alter table posthorn.inbox_requests
  alter column path type text,
  alter column body type bytea,
  alter column detail type text,
  alter column answered type jsonb;
alter table posthorn.outbox_rejected alter column data type bytea;
alter table posthorn.relay_rejected alter column body type bytea;
