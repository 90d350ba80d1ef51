import type { TypeVersion } from '../domain/version-pins.ts';
import type { VersionDirectory } from '../ports/version-directory.ts';
import type { Pool } from './database.ts';
import { withStoreErrors } from './store-error.ts';

interface VersionRow extends TypeVersion {
  readonly event_type: string;
}

const LOAD = {
  name: 'load_type_versions',
  text: `
    select event_type, version as name, status, extract(epoch from created_at)::float8 * 1000 as "createdAt",
           extract(epoch from deprecated_at)::float8 * 1000 as "deprecatedAt",
           extract(epoch from sunset_at)::float8 * 1000 as "sunsetAt"
      from posthorn.event_type_versions order by event_type, ordinal`,
};

/** The versions of all event types in memory, without their schemas. */
export class VersionCache implements VersionDirectory {
  readonly #pool: Pool;
  #versions: ReadonlyMap<string, readonly TypeVersion[]> = new Map();
  hasNotices = false;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  versionsOf(eventType: string): readonly TypeVersion[] {
    return this.#versions.get(eventType) ?? [];
  }

  async refresh(): Promise<void> {
    const { rows } = await withStoreErrors(this.#pool.query<VersionRow>(LOAD));
    this.#versions = Map.groupBy(rows, ({ event_type }) => event_type);
    this.hasNotices = rows.some(
      ({ status, sunsetAt }) => status === 'deprecated' || status === 'retired' || sunsetAt !== null,
    );
  }
}
