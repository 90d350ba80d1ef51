import type { Uuid } from '../../domain/ids.ts';
import type { Pool, Queryable } from '../database.ts';

/** A field that changed. Without values: they are secret, or too long to keep. */
export interface FieldChange {
  readonly field: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface AuditEntry {
  readonly id: Uuid;
  readonly tenant: string | null;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly scope: string;
  readonly action: string;
  readonly object_type: string;
  readonly object_id: string | null;
  readonly request_id: string;
  readonly address: string;
  readonly changes: readonly FieldChange[];
}

const COLUMNS =
  'id, tenant, actor, actor_name, scope, action, object_type, object_id, request_id, address, changes';

export async function insertAuditEntry(client: Queryable, entry: AuditEntry): Promise<void> {
  await client.query(
    `insert into posthorn.audit_log (${COLUMNS}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      entry.id,
      entry.tenant,
      entry.actor,
      entry.actor_name,
      entry.scope,
      entry.action,
      entry.object_type,
      entry.object_id,
      entry.request_id,
      entry.address,
      JSON.stringify(entry.changes),
    ],
  );
}

export interface AuditFilter {
  readonly tenant: string | null;
  readonly actor: string | null;
  readonly action: string | null;
  readonly objectId: string | null;
  /** From this id on. */
  readonly from: Uuid | null;
  /** Before this id. */
  readonly before: Uuid | null;
  readonly limit: number;
}

/**
 * Newest first. Only the conditions that were asked for are in the statement: then the index of any one of them gives
 * the rows in order already, and the scan ends at the limit.
 */
export async function listAuditEntries(pool: Pool, filter: AuditFilter): Promise<AuditEntry[]> {
  const values: unknown[] = [filter.limit];
  const conditions = ['true'];
  const where = (condition: string, value: unknown): void => {
    if (value !== null) conditions.push(`${condition} $${values.push(value)}`);
  };
  where('tenant =', filter.tenant);
  where('actor =', filter.actor);
  where('action =', filter.action);
  where('object_id =', filter.objectId);
  where('id >=', filter.from);
  where('id <', filter.before);
  const { rows } = await pool.query<AuditEntry>(
    `select ${COLUMNS} from posthorn.audit_log where ${conditions.join(' and ')} order by id desc limit $1`,
    values,
  );
  return rows;
}

/** A chunk of the oldest, by the primary key. */
export async function deleteAuditEntries(pool: Pool, before: Uuid, chunk: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from posthorn.audit_log
      where id = any (array(select id from posthorn.audit_log where id < $1 order by id limit $2))`,
    [before, chunk],
  );
  return rowCount ?? 0;
}
