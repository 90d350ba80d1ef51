-- As in 0004, and a time of its own is refused where it would be ignored: an endpoint that is named and sends in order. So
-- is a header that is given twice, in different case: only one of them would be sent.
create or replace function posthorn.publish_options(
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
      elsif deliver_at > clock_timestamp() and exists (
        select from posthorn.endpoints e where e.id = targets[place] and e.config ->> 'ordering' = 'fifo'
      ) then
        raise exception using errcode = '22023',
          message = format('posthorn.publish: deliver_at: endpoint_ids[%s] (%s) is a FIFO endpoint, which sends in the order of acceptance',
                           place, endpoint_ids[place]),
          hint = 'Leave deliver_at out, or that endpoint.';
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
    for header in
      select min(name) as one, max(name) as other from (select distinct name from json_object_keys(headers) as name) as names
       group by lower(name) having count(*) > 1
    loop
      raise exception using errcode = '22023',
        message = format('posthorn.publish: headers: "%s" and "%s" are the same header', header.one, header.other);
    end loop;
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
