import type { EventContent } from '../../domain/event.ts';
import type { Uuid } from '../../domain/ids.ts';
import type { Pool } from '../database.ts';

interface EventRow {
  id: Uuid;
  tenant: string;
  type: string;
  data: Buffer;
  idempotency_key: string | null;
  options: { headers?: Record<string, string>; schema_version?: string; test?: boolean } | null;
}

/** Loads events with their payloads. Events that do not exist (any more) or have lost their payload are missing. */
export async function loadEvents(pool: Pool, eventIds: readonly Uuid[]): Promise<Map<Uuid, EventContent>> {
  const { rows } = await pool.query<EventRow>({
    name: 'load_events',
    text: 'select id, tenant, type, data, idempotency_key, options from posthorn.events where id = any($1::uuid[]) and data is not null',
    values: [`{${eventIds.join(',')}}`],
  });
  return new Map(rows.map((row) => [row.id, toContent(row)]));
}

function toContent(row: EventRow): EventContent {
  return {
    id: row.id,
    tenant: row.tenant,
    type: row.type,
    data: row.data,
    idempotencyKey: row.idempotency_key,
    schemaVersion: row.options?.schema_version ?? null,
    headers: row.options?.headers ?? null,
    isTest: row.options?.test === true,
  };
}
