-- Publishing from the user's own transaction. `posthorn.publish` leaves a row in the outbox; the row becomes an event
-- in the statement that deletes it, so it does so exactly once. See docs/outbox.md.

create table posthorn.outbox (
  seq             bigint generated always as identity primary key,
  id              uuid not null,              -- of the event: the caller has been told it already
  tenant          text not null,
  type            text not null,
  data            bytea not null,             -- the producer's own bytes
  idempotency_key text,
  fingerprint     bytea,                      -- as in idempotency_keys
  options         json,                       -- as in events
  created_at      timestamptz not null default clock_timestamp(),
  check ((idempotency_key is null) = (fingerprint is null)),
  -- Also for rows that somebody puts there by hand: an envelope is written around it as it is.
  constraint outbox_data_is_json check (convert_from(data, 'UTF8')::json is not null)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- Two transactions that publish under one key: the second waits for the first, and returns its id. It does not wait
-- in posthorn.idempotency_keys, where it would hold up everybody who publishes over HTTP.
create unique index outbox_key on posthorn.outbox (tenant, idempotency_key) where idempotency_key is not null;

-- Rows that could not become events. Nothing that was committed is thrown away, and nothing waits behind it.
create table posthorn.outbox_rejected (
  id              uuid primary key,
  tenant          text not null,
  type            text not null,
  data            bytea not null,
  idempotency_key text,
  fingerprint     bytea,
  options         json,
  created_at      timestamptz not null,
  rejected_at     timestamptz not null default now(),
  reason          text not null
);

-- What the servers accept, for a function that cannot see their settings. They write it when they start.
create table posthorn.publish_limits (
  singleton       boolean primary key default true check (singleton),
  max_event_bytes int not null
);
insert into posthorn.publish_limits (max_event_bytes) values (262144);

-- The public form of an id (TypeID): two zero bits and the 128 bits of the id, five to a character.
create function posthorn.public_id(prefix text, id uuid) returns text
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  bits bit varying := B'00' || ('x' || replace(id::text, '-', ''))::bit(128);
  answer text := prefix || '_';
begin
  for place in 0..25 loop
    answer := answer || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(bits from 1 + 5 * place for 5)::bit(5)::int, 1);
  end loop;
  return answer;
end $$;

-- The id behind a public one; null if it is not one of this kind.
create function posthorn.private_id(prefix text, public_id text) returns uuid
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  suffix text := substr(public_id, length(prefix) + 2);
  bits bit varying := B'';
  digits text := '';
begin
  if not starts_with(public_id, prefix || '_') or suffix !~ '^[0-7][0-9a-hjkmnp-tv-z]{25}$' then return null; end if;
  for place in 1..26 loop
    bits := bits || (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(suffix, place, 1)) - 1)::bit(5);
  end loop;
  for word in 0..3 loop
    digits := digits || lpad(to_hex(substring(bits from 3 + 32 * word for 32)::bit(32)::bigint), 8, '0');
  end loop;
  return digits::uuid;
end $$;

-- What the optional fields say, checked and in the form in which events keep it. Null: nothing was asked for.
create function posthorn.publish_options(
  tenant text, channels text[], endpoint_ids text[], deliver_at timestamptz, headers json, schema_version text
) returns json language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  targets uuid[];
  header record;
begin
  if cardinality(channels) = 0 then channels := null; end if;
  if cardinality(channels) > 50 or exists (
    select from unnest(channels) c(name) where name is null or length(name) not between 1 and 128
  ) then
    raise exception using errcode = '22023',
      message = 'posthorn.publish: channels must be at most 50 texts of 1 to 128 characters';
  end if;

  if cardinality(endpoint_ids) > 1000 then
    raise exception using errcode = '22023', message = 'posthorn.publish: endpoint_ids must be at most 1000 endpoint ids';
  end if;
  if endpoint_ids is not null then
    targets := array(select posthorn.private_id('ep', wanted) from unnest(endpoint_ids) with ordinality t(wanted, n) order by n);
    for place in 1..cardinality(endpoint_ids) loop
      if targets[place] is null then
        raise exception using errcode = '22023',
          message = format('posthorn.publish: endpoint_ids[%s] is not an endpoint id (ep_…)', place);
      elsif not exists (
        select from posthorn.endpoints e
         where e.id = targets[place] and e.tenant = publish_options.tenant and e.enabled and e.deleted_at is null
      ) then
        raise exception using errcode = '22023',
          message = format('posthorn.publish: endpoint_ids[%s]: the tenant "%s" has no enabled endpoint %s',
                           place, tenant, endpoint_ids[place]),
          hint = 'Leave endpoint_ids out to publish to every endpoint that subscribes to the type.';
      end if;
    end loop;
  end if;

  if not isfinite(deliver_at) then
    raise exception using errcode = '22023', message = 'posthorn.publish: deliver_at must be a time, not infinity';
  end if;

  if length(schema_version) not between 1 and 64 then
    raise exception using errcode = '22023', message = 'posthorn.publish: schema_version must be 1 to 64 characters';
  end if;

  if json_typeof(headers) = 'null' then headers := null; end if;
  if headers is not null then
    if json_typeof(headers) <> 'object' then
      raise exception using errcode = '22023', message = 'posthorn.publish: headers must be a JSON object of texts';
    end if;
    if (select count(*) from json_object_keys(headers)) > 50 then
      raise exception using errcode = '22023', message = 'posthorn.publish: headers must have at most 50 entries';
    end if;
    for header in select key as name, value, headers ->> key as text from json_each(headers) loop
      if header.name !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]{1,128}$' then
        raise exception using errcode = '22023',
          message = format('posthorn.publish: headers: "%s" is not a valid header name', header.name);
      end if;
      -- The same list as in src/deliver/headers.ts; a test holds the two together.
      if lower(header.name) in (
        'host', 'content-length', 'content-type', 'content-encoding', 'connection', 'keep-alive', 'transfer-encoding',
        'te', 'trailer', 'upgrade', 'expect', 'accept-encoding', 'user-agent', 'x-hub-signature-256',
        'stripe-signature', 'x-webhook-signature', '__proto__'
      ) or lower(header.name) ~ '^(webhook-|posthorn-|proxy-|:)' then
        raise exception using errcode = '22023',
          message = format('posthorn.publish: headers: "%s" is reserved and cannot be set', header.name);
      end if;
      if json_typeof(header.value) <> 'string' or length(header.text) > 4096 or header.text !~ '^[\t\x20-\x7e]*$' then
        raise exception using errcode = '22023',
          message = format('posthorn.publish: headers: "%s" must be printable ASCII text of at most 4096 characters', header.name);
      end if;
    end loop;
    if not exists (select from json_object_keys(headers)) then headers := null; end if;
  end if;

  if coalesce(channels, endpoint_ids) is null and deliver_at is null and headers is null and schema_version is null then
    return null;
  end if;
  return json_strip_nulls(json_build_object(
    'channels', channels, 'headers', headers, 'schema_version', schema_version, 'endpoint_ids', targets,
    'deliver_at', floor(extract(epoch from deliver_at) * 1000)
  ));
end $$;

-- Publishes an event if, and only if, the calling transaction commits. Returns the event's id.
-- security definer: a role that may call this needs no right to any table, and can read nothing.
-- json, not jsonb: the text stays as it was written.
create function posthorn.publish(
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
    if length(publish.idempotency_key) not between 1 and 255 then
      raise exception using errcode = '22023', message = 'posthorn.publish: idempotency_key must be 1 to 255 characters';
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

  -- Held by an event that exists, or by a row that waits; or ours now. More than once: the row that held it may have
  -- become an event between two looks.
  for look in 1..3 loop
    select k.event_id, k.fingerprint into holder_id, holder_print
      from posthorn.idempotency_keys k
     where k.tenant = owner_tenant and k.key = publish.idempotency_key and k.expires_at > now();
    if not found then
      insert into posthorn.outbox (id, tenant, type, data, idempotency_key, fingerprint, options)
      values (new_id, owner_tenant, publish.type, bytes, publish.idempotency_key, digest, wanted)
          on conflict (tenant, idempotency_key) where idempotency_key is not null do nothing;
      if found then return posthorn.public_id('evt', new_id); end if;
      select o.id, o.fingerprint into holder_id, holder_print
        from posthorn.outbox o
       where o.tenant = owner_tenant and o.idempotency_key = publish.idempotency_key;
      continue when not found;
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

-- Puts rejected rows back into the outbox, behind what waits there: one of them, or all. Returns how many.
create function posthorn.retry_rejected(event_id text default null) returns bigint
language sql volatile set search_path = pg_catalog, pg_temp as $$
  with again as (
    delete from posthorn.outbox_rejected r
     where retry_rejected.event_id is null or r.id = posthorn.private_id('evt', retry_rejected.event_id)
    returning r.*
  ), back as (
    insert into posthorn.outbox (id, tenant, type, data, idempotency_key, fingerprint, options, created_at)
    select id, tenant, type, data, idempotency_key, fingerprint, options, created_at from again order by rejected_at, id
    returning 1
  )
  select count(*) from back;
$$;

-- Nobody may call these unless told: docs/outbox.md has the two grants that a publisher needs.
revoke all on function posthorn.public_id, posthorn.private_id, posthorn.publish_options, posthorn.publish,
  posthorn.retry_rejected from public;
