import { type ConversionNote, readConversionNote } from '../../domain/conversion-header.ts';
import { eventIdOfDelivery, type Uuid } from '../../domain/ids.ts';
import {
  type ConversionKey,
  conversionName,
  type SentQuery,
  type StoredConversion,
} from '../../ports/conversion-store.ts';
import type { Client, Pool, Queryable } from '../database.ts';

interface ConversionRow {
  event_id: Uuid;
  version: string;
  converter: string;
  data: Buffer;
}

/**
 * An event that an expunge or retention has locked is skipped: waiting would take a connection from all other deliveries. An
 * expunge that starts later waits for this commit, and deletes what it inserted.
 */
const KEEP = {
  name: 'keep_conversions',
  text: `
    with incoming as (
      select c.event_id, c.version, c.converter, substring($4::bytea from c.start for c.length) as data
        from unnest($1::uuid[], $2::text[], $3::text[], $5::int[], $6::int[]) as c(event_id, version, converter, start, length)
       order by c.event_id, c.version, c.converter
    ),
    live as materialized (
      select e.id from posthorn.events e
       where e.id = any (array(select event_id from incoming)) and e.data is not null
       order by e.id for share skip locked
    )
    insert into posthorn.converted_payloads (event_id, version, converter, data)
    select i.event_id, i.version, i.converter, i.data from incoming i join live on live.id = i.event_id
        on conflict do nothing`,
};

const LIVE = {
  name: 'live_events',
  text: 'select id from posthorn.events where id = any ($1::uuid[]) and data is not null',
};

const FIND = {
  name: 'find_conversions',
  text: `
    select p.event_id, p.version, p.converter, p.data
      from unnest($1::uuid[], $2::text[], $3::text[]) as k(event_id, version, converter)
      join posthorn.converted_payloads p using (event_id, version, converter)`,
};

const SENT_HEADERS = {
  name: 'sent_conversions',
  text: `
    select distinct on (a.delivery_id) a.delivery_id, a.request_headers
      from unnest($1::uuid[], $2::int[]) as q(delivery_id, after_attempt)
      join posthorn.attempts a on a.delivery_id = q.delivery_id and a.number > q.after_attempt
     where a.request_headers like '%"posthorn-conversion":"converted;%'
     order by a.delivery_id, a.number desc`,
};

/** Stores results that are not stored yet. Returns what is stored, as `ConversionStore.keep` does. */
export async function keepConversions(
  pool: Pool,
  conversions: readonly StoredConversion[],
): Promise<Map<string, Buffer | null>> {
  const starts: number[] = [];
  let start = 1;
  for (const { data } of conversions) {
    starts.push(start);
    start += data.length;
  }
  await pool.query({
    ...KEEP,
    values: [
      ...keyValues(conversions),
      Buffer.concat(conversions.map(({ data }) => data)),
      starts,
      conversions.map(({ data }) => data.length),
    ],
  });
  // A statement of its own: it sees rows that another process committed while this one waited.
  const stored = await findConversions(pool, conversions);
  const kept = new Map<string, Buffer | null>(stored.map((each) => [conversionName(each), each.data]));
  const missing = conversions.filter((each) => !kept.has(conversionName(each)));
  if (missing.length === 0) return kept;
  const { rows } = await pool.query<{ id: Uuid }>({
    ...LIVE,
    values: [missing.map(({ eventId }) => eventId)],
  });
  const live = new Set(rows.map(({ id }) => id));
  for (const each of missing) if (!live.has(each.eventId)) kept.set(conversionName(each), null);
  return kept;
}

export async function findConversions(
  queryable: Queryable,
  keys: readonly ConversionKey[],
): Promise<StoredConversion[]> {
  const { rows } = await queryable.query<ConversionRow>({ ...FIND, values: keyValues(keys) });
  return rows.map(({ event_id, ...row }) => ({ eventId: event_id, ...row }));
}

/** Returns what the latest converted attempt of each delivery was sent with. */
export async function findSentConversions(
  pool: Pool,
  queries: readonly SentQuery[],
): Promise<Map<Uuid, StoredConversion>> {
  const { rows } = await pool.query<{ delivery_id: Uuid; request_headers: string }>({
    ...SENT_HEADERS,
    values: [queries.map(({ deliveryId }) => deliveryId), queries.map(({ afterAttempt }) => afterAttempt)],
  });
  const sent = rows.flatMap(({ delivery_id, request_headers }) => {
    const key = conversionKeyOf(delivery_id, readConversionNote(JSON.parse(request_headers)));
    return key === null ? [] : [{ deliveryId: delivery_id, key }];
  });
  if (sent.length === 0) return new Map();
  const found = await findConversions(
    pool,
    sent.map(({ key }) => key),
  );
  const byName = new Map(found.map((conversion) => [conversionName(conversion), conversion]));
  return new Map(
    sent.flatMap(({ deliveryId, key }) => {
      const conversion = byName.get(conversionName(key));
      return conversion === undefined ? [] : [[deliveryId, conversion]];
    }),
  );
}

/** Names the stored payload that an attempt was sent with. Null: it was sent as it was published. */
export function conversionKeyOf(deliveryId: Uuid, note: ConversionNote | null): ConversionKey | null {
  if (note?.status !== 'converted') return null;
  return { eventId: eventIdOfDelivery(deliveryId), version: note.to, converter: note.converter };
}

const keyValues = (keys: readonly ConversionKey[]): [Uuid[], string[], string[]] => [
  keys.map(({ eventId }) => eventId),
  keys.map(({ version }) => version),
  keys.map(({ converter }) => converter),
];

/** Deletes the converted payloads of events whose own payload is gone, within the transaction that deleted it. */
export async function deleteConversions(client: Client, eventIds: readonly Uuid[]): Promise<void> {
  await client.query(
    `delete from posthorn.converted_payloads c
      where c.event_id = any ($1::uuid[])
        and not exists (select from posthorn.events e where e.id = c.event_id and e.data is not null)`,
    [eventIds],
  );
}

const ROWS_PER_CHUNK = 5_000;

/** Deletes the converted payloads of events that were dropped with their partition. Old events that are still needed keep theirs. */
export async function deleteOrphanedConversions(
  pool: Pool,
  firstKept: Uuid,
  isStopped: () => boolean,
): Promise<void> {
  for (let after: Uuid | null = '00000000-0000-0000-0000-000000000000'; after !== null && !isStopped(); ) {
    const { rows }: { rows: { scanned: number; last: Uuid | null }[] } = await pool.query(
      `with scanned as materialized (
         select c.event_id, c.version, c.converter from posthorn.converted_payloads c
          where c.event_id > $1 and c.event_id < $2 order by c.event_id limit ${ROWS_PER_CHUNK}
       ),
       deleted as (
         delete from posthorn.converted_payloads c using scanned s
          where c.event_id = s.event_id and c.version = s.version and c.converter = s.converter
            and not exists (select from posthorn.events e where e.id = c.event_id and e.data is not null)
       )
       select (select count(*)::int from scanned) as scanned,
              (select event_id from scanned order by event_id desc limit 1) as last`,
      [after, firstKept],
    );
    after = rows[0]!.scanned < ROWS_PER_CHUNK ? null : rows[0]!.last;
  }
}
