/** From notes to events: all within the transaction that takes the notes. */
import type { DisabledReason } from '../../domain/endpoint.ts';
import type { Uuid } from '../../domain/ids.ts';
import { type OperationalType, operationalTypes } from '../../domain/operational.ts';
import type { Client, Pool } from '../database.ts';

export interface Note {
  readonly seq: string;
  /** Null: it was noted by a statement that cannot come twice. */
  readonly id: Uuid | null;
  readonly kind: OperationalType;
  readonly endpoint_id: Uuid;
  readonly at: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

const OPERATIONAL_LOCK = 7_283_640_005;

/** Whether this transaction, and no other, may tell what there is to tell. */
export async function aloneInTelling(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>('select pg_try_advisory_xact_lock($1) as mine', [
    OPERATIONAL_LOCK,
  ]);
  return rows[0]!.mine;
}

export async function hasNotes(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ some: boolean }>({
    name: 'has_operational_notes',
    text: 'select exists (select from posthorn.operational_notes) as some',
  });
  return rows[0]!.some;
}

// Dead letters of an endpoint that were told of a moment ago are left for later, to be told of together.
const TAKE = {
  name: 'take_operational_notes',
  text: `
    delete from posthorn.operational_notes
     where seq = any (array(
       select n.seq from posthorn.operational_notes n
        where n.kind <> '${operationalTypes.deliveryDead}' or not exists (
                select from posthorn.operational_state s
                 where s.kind = n.kind and s.subject = n.endpoint_id::text
                   and s.at > now() - make_interval(secs => $1::float8))
        order by n.seq limit $2))
    returning seq, id, kind, endpoint_id, extract(epoch from at)::float8 * 1000 as at, detail`,
};

export async function takeNotes(client: Client, deadWindowMs: number, most: number): Promise<Note[]> {
  const { rows } = await client.query<Note>({ ...TAKE, values: [deadWindowMs / 1000, most] });
  return rows.sort((a, b) => Number(a.seq) - Number(b.seq));
}

/** Of the endpoints, as of now: later than what this transaction has read before. */
export async function currentVersion(client: Client): Promise<number> {
  const { rows } = await client.query<{ version: string }>(
    'select version from posthorn.subscription_version',
  );
  return Number(rows[0]!.version);
}

export interface NotedEndpoint {
  readonly id: Uuid;
  readonly tenant: string;
  readonly url: string;
  readonly description: string;
  readonly metadata: Record<string, unknown>;
  readonly enabled: boolean;
  readonly disabled_reason: DisabledReason | null;
}

/** Also deleted ones. */
export async function notedEndpoints(
  client: Client,
  ids: readonly Uuid[],
): Promise<Map<Uuid, NotedEndpoint>> {
  const { rows } = await client.query<NotedEndpoint>(
    `select id, tenant, url, description, metadata, enabled, disabled_reason
       from posthorn.endpoints where id = any ($1::uuid[])`,
    [ids],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

export interface OperationalEvent {
  readonly id: Uuid;
  readonly tenant: string;
  readonly type: OperationalType;
  readonly data: Readonly<Record<string, unknown>>;
  /** Null: everybody who subscribes. */
  readonly endpointIds: readonly Uuid[] | null;
}

/** Into the outbox, from where they become events like all others, exactly once. */
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

export async function setState(
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

/** Returns whether it was there. */
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
