/** From notes to events: all within the transaction that takes the notes. */
import type { Uuid } from '../../domain/ids.ts';
import { type OperationalType, operationalTypes } from '../../domain/operational.ts';
import type { NotedEndpoint, OperationalEvent, OperationalNote } from '../../ports/operational-store.ts';
import type { Client, Pool } from '../database.ts';
import { dueNotifiers } from './notice-digests.ts';

export async function findWork(
  pool: Pool,
  noticeWindowMs: number,
): Promise<{ notes: boolean; digests: boolean }> {
  const { rows } = await pool.query<{ notes: boolean; digests: boolean }>({
    name: 'find_operational_work',
    text: `select exists (select from posthorn.operational_notes) as notes, exists (${dueNotifiers('$1')}) as digests`,
    values: [noticeWindowMs / 1000],
  });
  return rows[0]!;
}

// Leaves notes about dead letters of an endpoint that had an event a moment ago, so that its next event covers all of them.
const TAKE = {
  name: 'take_operational_notes',
  text: `
    delete from posthorn.operational_notes
     where seq = any (array(
       select n.seq from posthorn.operational_notes n
        where n.kind <> '${operationalTypes.deliveryDead}' or not exists (
                select from posthorn.operational_state s
                 where s.kind = n.kind and s.subject = n.endpoint_id::text
                   -- A time in the future is from before the clock stepped back.
                   and s.at between now() - make_interval(secs => $1::float8) and now())
        order by n.seq limit $2))
    returning seq, id, kind, endpoint_id as "endpointId", extract(epoch from at)::float8 * 1000 as at, detail`,
};

export async function takeNotes(
  client: Client,
  deadWindowMs: number,
  maxNotes: number,
): Promise<OperationalNote[]> {
  const { rows } = await client.query<OperationalNote>({ ...TAKE, values: [deadWindowMs / 1000, maxNotes] });
  return rows.sort((a, b) => Number(a.seq) - Number(b.seq));
}

export async function readEndpointVersion(client: Client): Promise<number> {
  const { rows } = await client.query<{ version: string }>(
    'select version from posthorn.subscription_version',
  );
  return Number(rows[0]!.version);
}

export async function loadNotedEndpoints(
  client: Client,
  ids: readonly Uuid[],
): Promise<Map<Uuid, NotedEndpoint>> {
  const { rows } = await client.query<NotedEndpoint>(
    `select id, tenant, url, description, metadata, enabled, disabled_reason as "disabledReason"
       from posthorn.endpoints where id = any ($1::uuid[])`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

export async function publishOperational(client: Client, events: readonly OperationalEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ id, tenant, type, data, endpointIds }) => ({
    id,
    tenant,
    type,
    data: JSON.stringify(data),
    options: endpointIds && { endpoint_ids: endpointIds },
  }));
  await client.query(
    `insert into posthorn.outbox (id, tenant, type, data, options)
     select id, tenant, type, convert_to(data, 'UTF8'), options
       from json_to_recordset($1::json) as t(id uuid, tenant text, type text, data text, options json)`,
    [JSON.stringify(rows)],
  );
}

export async function setStates(
  client: Client,
  kind: OperationalType,
  subjects: readonly string[],
): Promise<void> {
  await client.query(
    `insert into posthorn.operational_state (kind, subject) select $1, unnest($2::text[])
         on conflict (kind, subject) do update set at = now()`,
    [kind, subjects],
  );
}

export async function clearState(client: Client, kind: OperationalType, subject: string): Promise<boolean> {
  const { rowCount } = await client.query(
    'delete from posthorn.operational_state where kind = $1 and subject = $2',
    [kind, subject],
  );
  return rowCount === 1;
}

export async function hasState(client: Client, kind: OperationalType, subject: string): Promise<boolean> {
  const { rows } = await client.query(
    'select from posthorn.operational_state where kind = $1 and subject = $2',
    [kind, subject],
  );
  return rows.length === 1;
}
