/** What the catalogue of event types keeps in the store, for the processes that check and convert payloads. */
import type { ValidationMode, VersionStatus } from '../domain/event-type-version.ts';
import type { Uuid } from '../domain/ids.ts';

export interface CatalogueVersion {
  readonly version: string;
  readonly status: VersionStatus;
  /** Times are in milliseconds since the epoch. */
  readonly createdAt: number;
  /** Since when it is deprecated or retired. */
  readonly deprecatedAt: number | null;
  readonly sunsetAt: number | null;
  /** Changes with every change of the version. */
  readonly revision: string;
}

export interface CatalogueType {
  readonly name: string;
  /** Null: the mode of the tenant applies. */
  readonly validation: ValidationMode | null;
  /** Since when the type itself is deprecated. Times are in milliseconds since the epoch. */
  readonly deprecatedAt: number | null;
  readonly sunsetAt: number | null;
  /** Changes with every change of the type itself. */
  readonly revision: string;
  /** In the order of their creation. */
  readonly versions: readonly CatalogueVersion[];
}

export interface CatalogueContents {
  readonly types: readonly CatalogueType[];
  /** Tenants whose mode is not `off`. */
  readonly tenantModes: ReadonlyMap<string, ValidationMode>;
}

export interface SchemaFailure {
  /** Made when the failure was found. */
  readonly id: Uuid;
  readonly tenant: string;
  readonly eventType: string;
  readonly version: string | null;
  /** Null: the event was refused. */
  readonly eventId: Uuid | null;
  readonly path: string;
  readonly message: string;
}

export interface CatalogueStore {
  /** Reads everything but schemas and examples. Throws `StoreError`. */
  load(): Promise<CatalogueContents>;
  /** Reads a schema. `version` null: the schema of the type itself. Null: there is none. Throws `StoreError`. */
  loadSchema(
    eventType: string,
    version: string | null,
  ): Promise<Readonly<Record<string, unknown>> | boolean | null>;
  /** Records failures for people to read, except those of expunged events. A repeated call records them once. Throws `StoreError`. */
  recordFailures(failures: readonly SchemaFailure[]): Promise<void>;
}
