/** Payloads that did not match their schema. */
import type { Uuid } from '../../domain/ids.ts';
import type { SchemaFailure } from '../../ports/catalogue-store.ts';
import type { Pool } from '../database.ts';

export interface SchemaFailureRecord {
  readonly id: Uuid;
  readonly tenant: string;
  readonly event_type: string;
  readonly version: string | null;
  readonly event_id: Uuid | null;
  readonly path: string;
  readonly message: string;
}

/** Leaves out failures of tenants that were deleted or are being expunged. */
export async function insertSchemaFailures(pool: Pool, failures: readonly SchemaFailure[]): Promise<void> {
  await pool.query(
    `insert into posthorn.schema_failures (id, tenant, event_type, version, event_id, path, message)
     select f.* from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[])
                     as f(id, tenant, event_type, version, event_id, path, message)
      where not exists (select from posthorn.tenants t where t.id = f.tenant and t.expunging_at is not null)`,
    [
      failures.map(({ id }) => id),
      failures.map(({ tenant }) => tenant),
      failures.map(({ eventType }) => eventType),
      failures.map(({ version }) => version),
      failures.map(({ eventId }) => eventId),
      failures.map(({ path }) => path.replaceAll('\0', '')),
      failures.map(({ message }) => message.replaceAll('\0', '')),
    ],
  );
}

/** Newest first. */
export async function listSchemaFailures(
  pool: Pool,
  filter: {
    readonly tenant: string | null;
    readonly eventType: string;
    readonly before: Uuid | null;
    readonly limit: number;
  },
): Promise<SchemaFailureRecord[]> {
  const { rows } = await pool.query<SchemaFailureRecord>(
    `select id, tenant, event_type, version, event_id, path, message from posthorn.schema_failures
      where event_type = $1 and ($2::text is null or tenant = $2) and ($3::uuid is null or id < $3)
      order by id desc limit $4`,
    [filter.eventType, filter.tenant, filter.before, filter.limit],
  );
  return rows;
}

export const SCHEMA_FAILURE_DAYS = 7;

export async function deleteOldSchemaFailures(pool: Pool): Promise<void> {
  await pool.query(
    'delete from posthorn.schema_failures where id < posthorn.first_id_at(now() - make_interval(days => $1))',
    [SCHEMA_FAILURE_DAYS],
  );
}
