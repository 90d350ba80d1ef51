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

/** Leaves out failures that are stored already, and those of expunged events and of tenants that are being expunged. */
export async function insertSchemaFailures(pool: Pool, failures: readonly SchemaFailure[]): Promise<void> {
  await pool.query(
    `insert into posthorn.schema_failures (id, tenant, event_type, version, event_id, path, message)
     select f.* from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[])
                     as f(id, tenant, event_type, version, event_id, path, message)
      where not exists (select from posthorn.tenants t where t.id = f.tenant and t.expunging_at is not null)
        and not exists (select from posthorn.expunged x where x.kind = 'event' and x.id = f.event_id::text)
     on conflict do nothing`,
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
    readonly from: Uuid | null;
    readonly before: Uuid | null;
    readonly limit: number;
  },
): Promise<SchemaFailureRecord[]> {
  const { rows } = await pool.query<SchemaFailureRecord>(
    `select id, tenant, event_type, version, event_id, path, message from posthorn.schema_failures
      where event_type = $1 and ($2::text is null or tenant = $2) and ($3::uuid is null or id < $3)
        and ($5::uuid is null or id >= $5)
      order by id desc limit $4`,
    [filter.eventType, filter.tenant, filter.before, filter.limit, filter.from],
  );
  return rows;
}

/** Deletes up to `max` failures with an id below `firstKept`, and returns how many. */
export async function deleteOldSchemaFailures(pool: Pool, firstKept: Uuid, max: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from posthorn.schema_failures
      where id = any (array(select id from posthorn.schema_failures where id < $1 order by id limit $2))`,
    [firstKept, max],
  );
  return rowCount ?? 0;
}

export interface KeptSchemaFailures {
  readonly perTenant: number;
  readonly perTenantAndType: number;
}

/** Deletes up to `max` failures that a tenant has beyond the limits, and returns how many. The newest stay. */
export async function deleteSurplusSchemaFailures(
  pool: Pool,
  keep: KeptSchemaFailures,
  max: number,
): Promise<number> {
  const ofTypes = await pool.query(DELETE_SURPLUS_OF_TYPES, [keep.perTenantAndType, max]);
  const ofTenants = await pool.query(DELETE_SURPLUS_OF_TENANTS, [keep.perTenant, max]);
  return Math.max(ofTypes.rowCount ?? 0, ofTenants.rowCount ?? 0);
}

/** The recursion jumps from group to group in the index, however many rows each has. */
const DELETE_SURPLUS_OF_TYPES = `
  with recursive groups(tenant, event_type) as (
    (select tenant, event_type from posthorn.schema_failures order by tenant, event_type limit 1)
    union all
    select next.* from groups g cross join lateral (
      select f.tenant, f.event_type from posthorn.schema_failures f
       where (f.tenant, f.event_type) > (g.tenant, g.event_type) order by f.tenant, f.event_type limit 1) next
  )
  delete from posthorn.schema_failures where id = any (array(
    select surplus.id from groups g cross join lateral (
      select f.id from posthorn.schema_failures f
       where f.tenant = g.tenant and f.event_type = g.event_type order by f.id desc offset $1) surplus
     limit $2))`;

const DELETE_SURPLUS_OF_TENANTS = `
  with recursive groups(tenant) as (
    (select tenant from posthorn.schema_failures order by tenant limit 1)
    union all
    select next.* from groups g cross join lateral (
      select f.tenant from posthorn.schema_failures f where f.tenant > g.tenant order by f.tenant limit 1) next
  )
  delete from posthorn.schema_failures where id = any (array(
    select surplus.id from groups g cross join lateral (
      select f.id from posthorn.schema_failures f where f.tenant = g.tenant order by f.id desc offset $1) surplus
     limit $2))`;
