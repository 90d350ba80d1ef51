import type { ValidationMode, VersionStatus } from '../../domain/event-type-version.ts';
import type { CatalogueContents, CatalogueType, CatalogueVersion } from '../../ports/catalogue-store.ts';
import type { Client, Pool, Queryable } from '../database.ts';
import { notifyCatalogue } from './event-types.ts';

export interface EventTypeVersionRecord {
  readonly event_type: string;
  readonly version: string;
  /** The order of creation within the event type, from 1. */
  readonly ordinal: number;
  readonly description: string;
  readonly changelog: string;
  readonly schema: Record<string, unknown> | boolean | null;
  readonly example: unknown;
  readonly status: VersionStatus;
  readonly sunset_at: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export type EventTypeVersionSettings = Omit<EventTypeVersionRecord, 'ordinal' | 'created_at' | 'updated_at'>;

const COLUMNS =
  'event_type, version, ordinal, description, changelog, schema, example, status, sunset_at, created_at, updated_at';

/** Oldest first, in the order of creation. An event type that does not exist has none. */
export async function listEventTypeVersions(
  queryable: Queryable,
  eventType: string,
): Promise<EventTypeVersionRecord[]> {
  const { rows } = await queryable.query<EventTypeVersionRecord>(
    `select ${COLUMNS} from posthorn.event_type_versions where event_type = $1 order by ordinal`,
    [eventType],
  );
  return rows;
}

/** The caller holds a lock on the event type, so that ordinals are assigned one at a time. */
export async function putEventTypeVersion(
  client: Client,
  settings: EventTypeVersionSettings,
): Promise<EventTypeVersionRecord> {
  const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
  const { rows } = await client.query<EventTypeVersionRecord>(
    `insert into posthorn.event_type_versions as v
            (event_type, version, ordinal, description, changelog, schema, example, status, sunset_at, deprecated_at)
     values ($1, $2, (select coalesce(max(ordinal), 0) + 1 from posthorn.event_type_versions where event_type = $1),
             $3, $4, $5, $6, $7, $8, case when $7 in ('deprecated', 'retired') then now() end)
         on conflict (event_type, version) do update
        set description = excluded.description, changelog = excluded.changelog, schema = excluded.schema,
            example = excluded.example, status = excluded.status, sunset_at = excluded.sunset_at, updated_at = now(),
            deprecated_at = case when excluded.deprecated_at is not null then coalesce(v.deprecated_at, excluded.deprecated_at) end
     returning ${COLUMNS}`,
    [
      settings.event_type,
      settings.version,
      settings.description,
      settings.changelog,
      text(settings.schema),
      text(settings.example),
      settings.status,
      settings.sunset_at,
    ],
  );
  await notifyCatalogue(client);
  return rows[0]!;
}

/** A node of the previous release deprecates a type without a time. The time of the type's last change stands in for it. */
const TYPE_COLUMNS = `name, validation, updated_at::text as revision,
  case when deprecated then extract(epoch from coalesce(deprecated_at, updated_at))::float8 * 1000 end as "deprecatedAt",
  extract(epoch from sunset_at)::float8 * 1000 as "sunsetAt"`;
const VERSION_COLUMNS = `event_type, version, status, extract(epoch from created_at)::float8 * 1000 as "createdAt",
  extract(epoch from deprecated_at)::float8 * 1000 as "deprecatedAt",
  extract(epoch from sunset_at)::float8 * 1000 as "sunsetAt", updated_at::text as revision`;

/** Reads all types and versions without their schemas. */
export async function loadCatalogue(pool: Pool): Promise<CatalogueContents> {
  const [types, versions, tenants] = await Promise.all([
    pool.query<Omit<CatalogueType, 'versions'>>({
      name: 'load_event_types',
      text: `select ${TYPE_COLUMNS} from posthorn.event_types`,
    }),
    pool.query<CatalogueVersion & { readonly event_type: string }>({
      name: 'load_event_type_versions',
      text: `select ${VERSION_COLUMNS} from posthorn.event_type_versions order by event_type, ordinal`,
    }),
    pool.query<{ id: string; validation: ValidationMode }>({
      name: 'load_validation_modes',
      text: "select id, validation from posthorn.tenants where validation <> 'off'",
    }),
  ]);
  const byType = Map.groupBy(versions.rows, ({ event_type }) => event_type);
  return {
    types: types.rows.map((type) => ({ ...type, versions: byType.get(type.name) ?? [] })),
    tenantModes: new Map(tenants.rows.map(({ id, validation }) => [id, validation])),
  };
}

/** Reads one type and its versions without their schemas. Null: there is no such type. */
export async function findCatalogueType(pool: Pool, name: string): Promise<CatalogueType | null> {
  const types = await pool.query<Omit<CatalogueType, 'versions'>>(
    `select ${TYPE_COLUMNS} from posthorn.event_types where name = $1`,
    [name],
  );
  const type = types.rows[0];
  if (type === undefined) return null;
  const versions = await pool.query<CatalogueVersion>(
    `select ${VERSION_COLUMNS} from posthorn.event_type_versions where event_type = $1 order by ordinal`,
    [name],
  );
  return { ...type, versions: versions.rows };
}

/** `version` null: the schema of the type itself. Null: there is none. */
export async function loadSchema(
  pool: Pool,
  eventType: string,
  version: string | null,
): Promise<EventTypeVersionRecord['schema']> {
  const { rows } = await pool.query<Pick<EventTypeVersionRecord, 'schema'>>(
    version === null
      ? 'select schema from posthorn.event_types where name = $1'
      : 'select schema from posthorn.event_type_versions where event_type = $1 and version = $2',
    version === null ? [eventType] : [eventType, version],
  );
  return rows[0]?.schema ?? null;
}

/** Returns another text after every change of the catalogue. `xmin` is the transaction that wrote a row last. */
export async function readCatalogueRevision(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ revision: string }>({
    name: 'catalogue_revision',
    text: `
      select md5(coalesce(string_agg(row, ',' order by row), '')) as revision
        from (select name || ' ' || xmin || ' ' || updated_at as row from posthorn.event_types
              union all
              select event_type || '@' || version || ' ' || xmin || ' ' || updated_at from posthorn.event_type_versions) as rows`,
  });
  return rows[0]!.revision;
}

/** The versions of all types, each in the order of their creation. */
export async function listAllVersions(pool: Pool): Promise<EventTypeVersionRecord[]> {
  const { rows } = await pool.query<EventTypeVersionRecord>(
    `select ${COLUMNS} from posthorn.event_type_versions order by event_type, ordinal`,
  );
  return rows;
}
