import type { RateLimit } from '../../domain/endpoint.ts';
import type { ValidationMode } from '../../domain/event-type-version.ts';
import { tenantBeingDeleted } from '../../domain/problem.ts';
import type { ClosedTenantList } from '../../ports/event-log.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { CHANNEL_NAMES } from '../notifier-channels.ts';

export interface TenantRecord {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly metadata: Record<string, unknown>;
  readonly ingest_per_second: number | null;
  readonly ingest_burst: number | null;
  /** Null: the default of the settings. */
  readonly max_endpoints: number | null;
  /** Null: the retention of the settings. */
  readonly retention_days: number | null;
  readonly validation: ValidationMode;
  /** The version that new endpoints pin. */
  readonly api_version: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type TenantSettings = Omit<TenantRecord, 'created_at' | 'updated_at'>;

const COLUMNS =
  'id, name, description, metadata, ingest_per_second, ingest_burst, max_endpoints, retention_days, validation, api_version, created_at, updated_at';

/**
 * Creates the tenant if it is new, and prevents its deletion until the transaction that uses it has committed. Throws
 * `conflict` while the tenant is being expunged.
 */
export async function ensureTenant(client: Client, id: string): Promise<void> {
  await client.query('insert into posthorn.tenants (id) values ($1) on conflict do nothing', [id]);
  if (await isExpunging(client, id)) throw tenantBeingDeleted(id);
}

/** Returns whether the tenant is being expunged. Prevents its deletion until the transaction ends. */
export async function isExpunging(client: Client, id: string): Promise<boolean> {
  const { rows } = await client.query<{ is_expunging: boolean }>(
    'select expunging_at is not null as is_expunging from posthorn.tenants where id = $1 for key share',
    [id],
  );
  return rows[0]?.is_expunging ?? false;
}

/** Creates the tenants that are new. Sorted, so that two processes with the same new tenants do not deadlock. */
export async function ensureTenants(pool: Pool, ids: readonly string[]): Promise<void> {
  await pool.query({
    name: 'ensure_tenants',
    text: 'insert into posthorn.tenants (id) select unnest($1::text[]) on conflict do nothing',
    values: [ids.toSorted()],
  });
}

export async function findTenant(pool: Pool, id: string): Promise<TenantRecord | null> {
  const { rows } = await pool.query<TenantRecord>(`select ${COLUMNS} from posthorn.tenants where id = $1`, [
    id,
  ]);
  return rows[0] ?? null;
}

/** The version that new endpoints of the tenant pin. Null: none. */
export async function findTenantPin(queryable: Queryable, id: string): Promise<string | null> {
  const { rows } = await queryable.query<{ api_version: string | null }>(
    'select api_version from posthorn.tenants where id = $1',
    [id],
  );
  return rows[0]?.api_version ?? null;
}

/** Locks the tenant against other changes, and against new endpoints and keys, until the transaction ends. */
export async function lockTenant(client: Client, id: string): Promise<TenantRecord | null> {
  const { rows } = await client.query<TenantRecord>(
    `select ${COLUMNS} from posthorn.tenants where id = $1 for update`,
    [id],
  );
  return rows[0] ?? null;
}

export async function putTenant(client: Client, tenant: TenantSettings): Promise<TenantRecord> {
  const { rows } = await client.query<TenantRecord>(
    `insert into posthorn.tenants (id, name, description, metadata, ingest_per_second, ingest_burst, max_endpoints, retention_days, validation, api_version)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         on conflict (id) do update
        set name = excluded.name, description = excluded.description, metadata = excluded.metadata,
            ingest_per_second = excluded.ingest_per_second, ingest_burst = excluded.ingest_burst,
            max_endpoints = excluded.max_endpoints, retention_days = excluded.retention_days,
            validation = excluded.validation, api_version = excluded.api_version, updated_at = now()
     returning ${COLUMNS}`,
    [
      tenant.id,
      tenant.name,
      tenant.description,
      tenant.metadata,
      tenant.ingest_per_second,
      tenant.ingest_burst,
      tenant.max_endpoints,
      tenant.retention_days,
      tenant.validation,
      tenant.api_version,
    ],
  );
  await notifyAll(client);
  return rows[0]!;
}

export async function deleteTenant(client: Client, id: string): Promise<void> {
  await client.query('delete from posthorn.tenants where id = $1', [id]);
  await notifyAll(client);
}

async function notifyAll(client: Queryable): Promise<void> {
  await client.query(`select pg_notify('${CHANNEL_NAMES.tenants}', '')`);
}

/** Whether the tenant has endpoints that are not deleted, or keys that are not revoked. Portal sessions do not count. */
export async function readTenantUse(
  client: Client,
  id: string,
): Promise<{ endpoints: boolean; keys: boolean }> {
  const { rows } = await client.query<{ endpoints: boolean; keys: boolean }>(
    `select exists (select from posthorn.endpoints where tenant = $1 and deleted_at is null) as endpoints,
            exists (select from posthorn.api_keys where tenant = $1 and revoked_at is null and not is_portal_session) as keys`,
    [id],
  );
  return rows[0]!;
}

/** Newest first. */
export async function listTenants(
  pool: Pool,
  page: { before: { at: Date; name: string } | null; limit: number },
): Promise<TenantRecord[]> {
  const { before, limit } = page;
  const { rows } = await pool.query<TenantRecord>(
    `select ${COLUMNS} from posthorn.tenants
      ${before === null ? '' : 'where (created_at, id) < ($2, $3)'}
      order by created_at desc, id desc limit $1`,
    before === null ? [limit] : [limit, before.at, before.name],
  );
  return rows;
}

/** The rate limits of the tenants that have their own. */
export async function loadIngestLimits(pool: Pool): Promise<Map<string, RateLimit>> {
  const { rows } = await pool.query<{ id: string; per_second: number; burst: number }>({
    name: 'load_ingest_limits',
    text: `select id, ingest_per_second as per_second, ingest_burst as burst
             from posthorn.tenants where ingest_per_second is not null`,
  });
  return new Map(rows.map(({ id, per_second, burst }) => [id, { perSecond: per_second, burst }]));
}

/** Tenants whose data is being deleted. */
export async function listClosedTenants(pool: Pool): Promise<ClosedTenantList> {
  const { rows } = await pool.query<{ ids: string[]; read_at_ms: number }>({
    name: 'list_closed_tenants',
    text: `select array(select id from posthorn.tenants where expunging_at is not null) as ids,
                  extract(epoch from now())::float8 * 1000 as read_at_ms`,
  });
  const { ids, read_at_ms } = rows[0]!;
  return { tenants: new Set(ids), readAt: read_at_ms };
}
