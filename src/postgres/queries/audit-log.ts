import { newId, type Uuid } from '../../domain/ids.ts';
import type { Pool, Queryable } from '../database.ts';
import {
  byIndex,
  hideFromPlanner,
  type IdRange,
  type ListResult,
  listQuery,
  toListResult,
} from './list-query.ts';

/** A field that changed. It has no values if they are secret or too long. */
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

/** The scope of the operator's keys and people. Only they can change objects of several tenants. */
export const OPERATOR_SCOPE = 'admin';

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

/** Records a change that Posthorn made by itself: there is no key, no request and no address. */
export async function insertOwnAuditEntry(
  client: Queryable,
  entry: {
    readonly action: string;
    readonly tenant: string | null;
    readonly objectId: string;
    readonly changes: readonly FieldChange[];
  },
): Promise<void> {
  const { rows } = await client.query<{ now: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
  );
  await insertAuditEntry(client, {
    id: newId(rows[0]!.now),
    tenant: entry.tenant,
    actor: 'posthorn',
    actor_name: null,
    scope: 'system',
    action: entry.action,
    object_type: entry.action.split('.')[0]!,
    object_id: entry.objectId,
    request_id: '',
    address: '',
    changes: entry.changes,
  });
}

export interface AuditFilter extends IdRange {
  readonly tenant: string | null;
  readonly actor: string | null;
  /** Only changes of the operator, or only those of others. Null: both. */
  readonly byOperator: boolean | null;
  readonly action: string | null;
  readonly objectId: string | null;
  readonly limit: number;
}

/** Newest first, by the index of one condition; the other conditions are checked on those rows. */
export async function listAuditEntries(pool: Pool, filter: AuditFilter): Promise<ListResult<AuditEntry>> {
  const { text, values } = auditStatement(filter);
  const { rows } = await pool.query<AuditEntry & { reached_id: Uuid | null }>(text, values);
  return toListResult(rows, filter.limit);
}

export function auditStatement(filter: AuditFilter): { text: string; values: unknown[] } {
  const values: unknown[] = [filter.limit];
  const bind = (value: unknown): string => `$${values.push(value)}`;
  // By tenant first, so that only its own rows are examined; then the most selective condition.
  const conditions = Object.entries({
    tenant: filter.tenant,
    object_id: filter.objectId,
    actor: filter.actor,
    action: filter.action,
  }).flatMap(([column, value]) => (value === null ? [] : [{ column, value: bind(value) }]));
  const [first, ...others] = conditions;
  const range =
    first === undefined
      ? byIndex([], [], filter, bind)
      : byIndex([first.column], [hideFromPlanner(first.value)], filter, bind);
  const moreConditions = others.map(({ column, value }) => `q.${column} = ${value}`);
  if (filter.byOperator !== null)
    moreConditions.push(`(q.scope = ${bind(OPERATOR_SCOPE)}) = ${bind(filter.byOperator)}`);
  return { text: listQuery('audit_log', COLUMNS, range, moreConditions, '$1'), values };
}

/** Deletes up to `chunk` of the oldest entries, and returns how many. */
export async function deleteAuditEntries(pool: Pool, before: Uuid, chunk: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from posthorn.audit_log
      where id = any (array(select id from posthorn.audit_log where id < $1 order by id limit $2))`,
    [before, chunk],
  );
  return rowCount ?? 0;
}
