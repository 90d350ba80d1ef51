import type { ValidationMode } from '../../domain/event-type-version.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';

export interface EventTypeRecord {
  readonly name: string;
  readonly description: string;
  readonly schema: Record<string, unknown> | boolean | null;
  readonly example: unknown;
  readonly deprecated: boolean;
  readonly sunset_at: Date | null;
  /** Null: the mode of the tenant applies. */
  readonly validation: ValidationMode | null;
  /** See `latestVersion`. Null: there is none. */
  readonly latest_version: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type EventTypeSettings = Omit<EventTypeRecord, 'latest_version' | 'created_at' | 'updated_at'>;

const COLUMNS = `name, description, schema, example, deprecated, sunset_at, validation, created_at, updated_at,
  (select v.version from posthorn.event_type_versions v
    where v.event_type = name and v.status in ('active', 'deprecated')
    order by v.status = 'active' desc, v.ordinal desc limit 1) as latest_version`;

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
    `insert into posthorn.event_types as t
            (name, description, schema, example, deprecated, sunset_at, validation, deprecated_at)
     values ($1, $2, $3, $4, $5, $6, $7, case when $5 then now() end)
         on conflict (name) do update
        set description = excluded.description, schema = excluded.schema, example = excluded.example,
            deprecated = excluded.deprecated, sunset_at = excluded.sunset_at, validation = excluded.validation,
            updated_at = now(),
            deprecated_at = case when excluded.deprecated then coalesce(t.deprecated_at, excluded.deprecated_at) end
     returning ${COLUMNS}`,
    [
      type.name,
      type.description,
      text(type.schema),
      text(type.example),
      type.deprecated,
      type.sunset_at,
      type.validation,
    ],
  );
  await notifyCatalogue(client);
  return rows[0]!;
}

export async function deleteEventType(client: Client, name: string): Promise<boolean> {
  const { rowCount } = await client.query('delete from posthorn.event_types where name = $1', [name]);
  await notifyCatalogue(client);
  return rowCount === 1;
}

/** Tells all processes to read the catalogue again. */
export async function notifyCatalogue(client: Queryable): Promise<void> {
  await client.query(`select pg_notify('${CHANNEL_NAMES.catalogue}', '')`);
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

/** By name. */
export async function listAllEventTypes(pool: Pool): Promise<EventTypeRecord[]> {
  const { rows } = await pool.query<EventTypeRecord>(
    `select ${COLUMNS} from posthorn.event_types order by name`,
  );
  return rows;
}
