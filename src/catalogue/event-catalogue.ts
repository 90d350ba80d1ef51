/**
 * The catalogue in memory: which event types exist, their versions and modes. Schemas are read and compiled when they are
 * needed first, and kept within a bound of memory.
 */
import { latestVersion, type ValidationMode } from '../domain/event-type-version.ts';
import { shareReads } from '../domain/share-reads.ts';
import type { Deprecation, TypeVersion } from '../domain/version-pins.ts';
import type { CatalogueStore, CatalogueType, CatalogueVersion } from '../ports/catalogue-store.ts';
import type { VersionDirectory } from '../ports/version-directory.ts';
import type { CompiledSchema } from './compile-schema.ts';
import { compileStored } from './read-schema.ts';

export interface KnownType extends CatalogueType {
  /** The version that events without `schemaVersion` get. Null: they get none. */
  readonly latest: string | null;
}

export interface EventCatalogueOptions {
  readonly store: Pick<CatalogueStore, 'load' | 'loadSchema'>;
  readonly onProblem: (what: string, error: unknown) => void;
  /** How much memory compiled schemas may take, as estimated from their size. */
  readonly maxCompiledBytes?: number;
}

interface CachedSchema {
  readonly revision: string;
  readonly schema: Promise<LoadedSchema>;
  /** An estimate. Until the schema is loaded, the size of an empty one. */
  bytes: number;
}

interface LoadedSchema {
  /** Null: there is none, or it is not usable. */
  readonly compiled: CompiledSchema | null;
  /** The length of its JSON. */
  readonly length: number;
}

/** Deliveries of such a version announce its end. */
const isEnding = ({ status, sunsetAt }: CatalogueVersion): boolean =>
  status === 'deprecated' || status === 'retired' || sunsetAt !== null;
/** All deliveries of such a type announce its end. */
const isTypeEnding = ({ deprecatedAt, sunsetAt }: CatalogueType): boolean =>
  deprecatedAt !== null || sunsetAt !== null;

/** Measured: a compiled schema takes 16 KiB, and 50 bytes for each byte of its JSON. */
const BYTES_PER_SCHEMA = 16 * 1024;
const BYTES_PER_BYTE = 50;
const MAX_COMPILED_BYTES = 128 * 1024 * 1024;

export class EventCatalogue implements VersionDirectory {
  readonly #options: EventCatalogueOptions;
  #types: ReadonlyMap<string, KnownType> = new Map();
  #tenantModes: ReadonlyMap<string, ValidationMode> = new Map();
  #versions: ReadonlyMap<string, readonly TypeVersion[]> = new Map();
  hasDeprecations = false;
  /** By type and version. The first is the least recently used. */
  readonly #compiled = new Map<string, CachedSchema>();
  #compiledBytes = 0;
  /** Resolves when everything that was committed before this call is in memory. */
  readonly refresh = shareReads(() => this.#load());

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

  deprecationOf(name: string): Deprecation | null {
    const type = this.#types.get(name);
    return type !== undefined && isTypeEnding(type) ? type : null;
  }

  /** How payloads of the type are checked. The mode of the type outranks that of the tenant. */
  modeOf(tenant: string, type: KnownType | undefined): ValidationMode {
    return type?.validation ?? this.#tenantModes.get(tenant) ?? 'off';
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
    this.hasDeprecations = types.some((type) => isTypeEnding(type) || type.versions.some(isEnding));
  }

  /** The compiled schema of a version, or of the type itself. Null: it has no schema. Throws `StoreError`. */
  async schemaOf(type: CatalogueType, version: CatalogueVersion | null): Promise<CompiledSchema | null> {
    const key = `${type.name}\n${version?.version ?? ''}`;
    const { revision } = version ?? type;
    const cached = this.#compiled.get(key);
    const isCurrent = cached?.revision === revision;
    const entry = isCurrent
      ? cached
      : { revision, schema: this.#loadSchema(type.name, version?.version ?? null), bytes: BYTES_PER_SCHEMA };
    this.#forget(key);
    this.#compiled.set(key, entry);
    this.#compiledBytes += entry.bytes;
    try {
      const { compiled, length } = await entry.schema;
      if (!isCurrent) this.#countBytes(key, entry, length);
      return compiled;
    } catch (error) {
      if (this.#compiled.get(key) === entry) this.#forget(key);
      throw error;
    }
  }

  #forget(key: string): void {
    this.#compiledBytes -= this.#compiled.get(key)?.bytes ?? 0;
    this.#compiled.delete(key);
  }

  /** Counts the size of a schema that was compiled, and drops the least recently used ones if there are too many. */
  #countBytes(key: string, entry: CachedSchema, length: number): void {
    if (this.#compiled.get(key) !== entry) return;
    this.#compiledBytes -= entry.bytes;
    entry.bytes += BYTES_PER_BYTE * length;
    this.#compiledBytes += entry.bytes;
    const { maxCompiledBytes = MAX_COMPILED_BYTES } = this.#options;
    for (const oldest of this.#compiled.keys()) {
      if (this.#compiledBytes <= maxCompiledBytes) return;
      if (oldest !== key) this.#forget(oldest);
    }
  }

  async #loadSchema(eventType: string, version: string | null): Promise<LoadedSchema> {
    const schema = await this.#options.store.loadSchema(eventType, version);
    if (schema === null) return { compiled: null, length: 0 };
    const { length } = JSON.stringify(schema);
    try {
      return { compiled: compileStored(schema), length };
    } catch (error) {
      // An earlier release stored a schema that this one refuses. Its events are not checked.
      this.#options.onProblem(`compile the schema of ${eventType}`, error);
      return { compiled: null, length: 0 };
    }
  }
}
