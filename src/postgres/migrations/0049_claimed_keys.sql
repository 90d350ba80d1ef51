-- With POSTHORN_BACKBONE=kafka, an idempotency key is claimed before its event is written to Kafka. It is claimed until the event is
-- stored here: the event may be in Kafka or not, so a repeated request writes it again, under the same id.
alter table posthorn.idempotency_keys add column claimed boolean not null default false;

-- posthorn.publish as in 0024, but a key that is only claimed belongs to no event yet: the claimed one may never be stored.
create or replace function posthorn.publish(
  type            text,
  data            json,
  tenant          text        default 'default',
  idempotency_key text        default null,
  channels        text[]      default null,
  endpoint_ids    text[]      default null,
  deliver_at      timestamptz default null,
  headers         json        default null,
  schema_version  text        default null
) returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  owner_tenant text := coalesce(publish.tenant, 'default');
  bytes        bytea := convert_to(publish.data::text, 'UTF8');
  max_bytes    int;
  digest       bytea;
  wanted       json;
  random       text;
  time         text;
  new_id       uuid;
  holder_id    uuid;
  holder_print bytea;
begin
  if publish.type is null or length(publish.type) > 128 or publish.type !~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$' then
    raise exception using errcode = '22023',
      message = format('posthorn.publish: type %s is not an event type', coalesce(quote_literal(left(publish.type, 200)), 'null')),
      hint = 'Dot-separated segments of letters, digits, _ and -, at most 128 characters, such as ''order.created''.';
  end if;
  if starts_with(publish.type, 'posthorn.') then
    raise exception using errcode = '22023',
      message = 'posthorn.publish: types that begin with "posthorn." are reserved for Posthorn''s own events';
  end if;
  if bytes is null then
    raise exception using errcode = '22004', message = 'posthorn.publish: data is required',
      hint = 'Any JSON value. To publish JSON''s null, pass ''null''::json.';
  end if;
  select l.max_event_bytes into max_bytes from posthorn.publish_limits l;
  if length(bytes) > max_bytes then
    raise exception using errcode = '54000',
      message = format('posthorn.publish: data has %s bytes, at most %s are accepted', length(bytes), max_bytes),
      hint = 'Publish a reference instead, or raise POSTHORN_MAX_EVENT_BYTES on the servers.';
  end if;
  if owner_tenant !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$' then
    raise exception using errcode = '22023',
      message = format('posthorn.publish: tenant %s is not a tenant id', quote_literal(left(owner_tenant, 200))),
      hint = '1 to 128 letters, digits, or any of . _ : - and begins with a letter or digit.';
  end if;
  if publish.idempotency_key is not null then
    if length(publish.idempotency_key) not between 1 and 255 or publish.idempotency_key !~ '^[ -~]*$' then
      raise exception using errcode = '22023',
        message = 'posthorn.publish: idempotency_key must be 1 to 255 printable ASCII characters',
        hint = 'It is sent to receivers as a header.';
    end if;
    digest := sha256(convert_to(publish.type || E'\n', 'UTF8') || bytes);
  end if;
  if coalesce(publish.channels, publish.endpoint_ids) is not null or publish.deliver_at is not null
     or publish.headers is not null or publish.schema_version is not null then
    wanted := posthorn.publish_options(owner_tenant, publish.channels, publish.endpoint_ids, publish.deliver_at,
                                       publish.headers, publish.schema_version);
  end if;

  -- An id as src/domain/ids.ts makes them: version 7, the last 16 bits free for its deliveries.
  random := gen_random_uuid()::text;
  time := lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0');
  new_id := (substr(time, 1, 8) || substr(time, 9, 4) || '7' || substr(random, 16, 3) || substr(random, 20, 4)
             || substr(random, 25, 8) || '0000')::uuid;

  if publish.idempotency_key is null then
    insert into posthorn.outbox (id, tenant, type, data, options)
    values (new_id, owner_tenant, publish.type, bytes, wanted);
    return posthorn.public_id('evt', new_id);
  end if;

  -- The key belongs to an event, to a waiting row, or to nobody. Each look may be out of date by the next: the row that
  -- held the key may have become an event meanwhile.
  for look in 1..3 loop
    select k.event_id, k.fingerprint into holder_id, holder_print
      from posthorn.idempotency_keys k
     where k.tenant = owner_tenant and k.key = publish.idempotency_key and not k.claimed and k.expires_at > now();
    if not found then
      insert into posthorn.outbox (id, tenant, type, data, idempotency_key, fingerprint, options)
      values (new_id, owner_tenant, publish.type, bytes, publish.idempotency_key, digest, wanted)
          on conflict (tenant, idempotency_key) where idempotency_key is not null do nothing;
      if found then
        -- The insert waits for a transaction that holds the key. If that one committed, and its row became an event before
        -- the insert went on, the row was inserted although the key belongs to that event.
        select k.event_id, k.fingerprint into holder_id, holder_print
          from posthorn.idempotency_keys k
         where k.tenant = owner_tenant and k.key = publish.idempotency_key and not k.claimed and k.expires_at > now();
        if not found then return posthorn.public_id('evt', new_id); end if;
        delete from posthorn.outbox o
         where o.tenant = owner_tenant and o.idempotency_key = publish.idempotency_key and o.id = new_id;
      else
        select o.id, o.fingerprint into holder_id, holder_print
          from posthorn.outbox o
         where o.tenant = owner_tenant and o.idempotency_key = publish.idempotency_key;
        continue when not found;
      end if;
    end if;
    if holder_print <> digest then
      raise exception using errcode = '23505',
        message = format('posthorn.publish: the idempotency key %s was used for an event with another type or data',
                         quote_literal(publish.idempotency_key)),
        detail = format('It belongs to %s.', posthorn.public_id('evt', holder_id)),
        hint = 'Use a key of its own for each thing that happened.';
    end if;
    return posthorn.public_id('evt', holder_id);
  end loop;
  raise exception using errcode = '40001',
    message = format('posthorn.publish: the idempotency key %s changes hands too quickly', quote_literal(publish.idempotency_key)),
    hint = 'Run the transaction again.';
end $$;
