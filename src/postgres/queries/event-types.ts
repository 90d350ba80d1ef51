import type { Client, Pool, Queryable } from '../database.ts';

export interface EventTypeRecord {
  readonly name: string;
  readonly description: string;
  readonly schema: Record<string, unknown> | boolean | null;
  readonly example: unknown;
  readonly deprecated: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type EventTypeSettings = Omit<EventTypeRecord, 'created_at' | 'updated_at'>;

const COLUMNS = 'name, description, schema, example, deprecated, created_at, updated_at';

export async function findEventType(queryable: Queryable, name: string): Promise<EventTypeRecord | null> {
  const { rows } = await queryable.query<EventTypeRecord>(
    `select ${COLUMNS} from posthorn.event_types where name = $1`,
    [name],
  );
  return rows[0] ?? null;
}

/** Locks the event type against other changes until the transaction ends. */
export async function lockEventType(client: Client, name: string): Promise<EventTypeRecord | null> {
  const { rows } = await client.query<EventTypeRecord>(
    `select ${COLUMNS} from posthorn.event_types where name = $1 for update`,
    [name],
  );
  return rows[0] ?? null;
}

export async function putEventType(client: Client, type: EventTypeSettings): Promise<EventTypeRecord> {
  const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
  const { rows } = await client.query<EventTypeRecord>(
    `insert into posthorn.event_types (name, description, schema, example, deprecated)
     values ($1, $2, $3, $4, $5)
         on conflict (name) do update
        set description = excluded.description, schema = excluded.schema, example = excluded.example,
            deprecated = excluded.deprecated, updated_at = now()
     returning ${COLUMNS}`,
    [type.name, type.description, text(type.schema), text(type.example), type.deprecated],
  );
  return rows[0]!;
}

export async function deleteEventType(client: Client, name: string): Promise<boolean> {
  const { rowCount } = await client.query('delete from posthorn.event_types where name = $1', [name]);
  return rowCount === 1;
}

/** Newest first. */
export async function listEventTypes(
  pool: Pool,
  page: { before: { at: Date; name: string } | null; limit: number },
): Promise<EventTypeRecord[]> {
  const { before, limit } = page;
  const { rows } = await pool.query<EventTypeRecord>(
    `select ${COLUMNS} from posthorn.event_types
      ${before === null ? '' : 'where (created_at, name) < ($2, $3)'}
      order by created_at desc, name desc limit $1`,
    before === null ? [limit] : [limit, before.at, before.name],
  );
  return rows;
}
