/**
 * The catalogue in memory: which event types exist, their versions and modes. Schemas are read and compiled when they are
 * needed first, and a bounded number of them is kept.
 */
import { latestVersion, type ValidationMode } from '../domain/event-type-version.ts';
import type { TypeVersion } from '../domain/version-pins.ts';
import type { CatalogueStore, CatalogueType, CatalogueVersion } from '../ports/catalogue-store.ts';
import type { VersionDirectory } from '../ports/version-directory.ts';
import type { CompiledSchema } from './compile-schema.ts';
import { compileStored } from './read-schema.ts';

export interface KnownType extends CatalogueType {
  /** The newest active version. */
  readonly latest: string | null;
}

export interface EventCatalogueOptions {
  readonly store: Pick<CatalogueStore, 'load' | 'loadSchema'>;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface CachedSchema {
  readonly revision: string;
  readonly schema: Promise<CompiledSchema | null>;
}

/** Deliveries of such a version announce its end. */
const hasNotice = ({ status, sunsetAt }: CatalogueVersion): boolean =>
  status === 'deprecated' || status === 'retired' || sunsetAt !== null;

const MAX_COMPILED = 500;

export class EventCatalogue implements VersionDirectory {
  readonly #options: EventCatalogueOptions;
  #types: ReadonlyMap<string, KnownType> = new Map();
  #tenantModes: ReadonlyMap<string, ValidationMode> = new Map();
  #versions: ReadonlyMap<string, readonly TypeVersion[]> = new Map();
  hasNotices = false;
  /** By type and version. The first is the least recently used. */
  readonly #compiled = new Map<string, CachedSchema>();
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;

  constructor(options: EventCatalogueOptions) {
    this.#options = options;
  }

  typeOf(name: string): KnownType | undefined {
    return this.#types.get(name);
  }

  get types(): Iterable<KnownType> {
    return this.#types.values();
  }

  versionsOf(name: string): readonly TypeVersion[] {
    return this.#versions.get(name) ?? [];
  }

  /** How payloads of the type are checked. The mode of the type outranks that of the tenant. */
  modeOf(tenant: string, type: KnownType | undefined): ValidationMode {
    return type?.validation ?? this.#tenantModes.get(tenant) ?? 'off';
  }

  /** Resolves when everything that was committed before this call is in memory. */
  refresh(): Promise<void> {
    if (this.#running === null) {
      this.#running = this.#load().finally(() => {
        this.#running = null;
      });
      return this.#running;
    }
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.refresh();
      });
    return this.#next;
  }

  async #load(): Promise<void> {
    const { types, tenantModes } = await this.#options.store.load();
    this.#types = new Map(
      types.map((type) => [type.name, { ...type, latest: latestVersion(type.versions)?.version ?? null }]),
    );
    this.#tenantModes = tenantModes;
    this.#versions = new Map(
      types.map(({ name, versions }) => [name, versions.map((each) => ({ ...each, name: each.version }))]),
    );
    this.hasNotices = types.some(({ versions }) => versions.some(hasNotice));
  }

  /** The compiled schema of a version, or of the type itself. Null: it has no schema. Throws `StoreError`. */
  async schemaOf(type: CatalogueType, version: CatalogueVersion | null): Promise<CompiledSchema | null> {
    const key = `${type.name}\n${version?.version ?? ''}`;
    const { revision } = version ?? type;
    const cached = this.#compiled.get(key);
    if (cached !== undefined) this.#compiled.delete(key);
    const entry =
      cached?.revision === revision
        ? cached
        : { revision, schema: this.#compile(type.name, version?.version ?? null) };
    this.#compiled.set(key, entry);
    if (this.#compiled.size > MAX_COMPILED) this.#compiled.delete(this.#compiled.keys().next().value!);
    try {
      return await entry.schema;
    } catch (error) {
      if (this.#compiled.get(key) === entry) this.#compiled.delete(key);
      throw error;
    }
  }

  async #compile(eventType: string, version: string | null): Promise<CompiledSchema | null> {
    const schema = await this.#options.store.loadSchema(eventType, version);
    if (schema === null) return null;
    try {
      return compileStored(schema);
    } catch (error) {
      // An earlier release stored a schema that this one refuses. Its events are not checked.
      this.#options.onProblem(`compile the schema of ${eventType}`, error);
      return null;
    }
  }
}
