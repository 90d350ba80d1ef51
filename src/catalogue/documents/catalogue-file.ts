/** The catalogue as one document that lives in version control. */
import type { ValidationMode, VersionStatus } from '../../domain/event-type-version.ts';
import { isObject, type Json, type JsonSchema } from '../keywords.ts';
import { readAsyncApi } from './read-asyncapi.ts';
import { readOpenApi } from './read-openapi.ts';

export interface VersionEntry {
  readonly description?: string;
  readonly changelog?: string;
  readonly schema?: JsonSchema | null;
  readonly example?: unknown;
  readonly status?: VersionStatus;
  readonly sunset_at?: string | null;
}

export interface TypeEntry {
  readonly description?: string;
  readonly schema?: JsonSchema | null;
  readonly example?: unknown;
  readonly deprecated?: boolean;
  readonly sunset_at?: string | null;
  readonly validation?: ValidationMode | null;
  /** In the order of their creation. */
  readonly versions?: Readonly<Record<string, VersionEntry>>;
}

export interface CatalogueFile {
  readonly event_types: Readonly<Record<string, TypeEntry>>;
}

/**
 * Reads a catalogue, an OpenAPI 3.1 document with `webhooks`, or an AsyncAPI 3 document. Throws an error that says what is
 * wrong.
 */
export function readCatalogue(document: unknown): CatalogueFile {
  if (!isObject(document)) throw new Error('must be an object');
  if (typeof document.openapi === 'string') return readOpenApi(document);
  if (typeof document.asyncapi === 'string') return readAsyncApi(document);
  if (!isObject(document.event_types))
    throw new Error('must have "event_types", or be an OpenAPI 3.1 or AsyncAPI 3 document');
  for (const [name, type] of Object.entries(document.event_types)) {
    if (!isObject(type)) throw new Error(`event_types.${name} must be an object`);
    if (type.versions !== undefined && !isObject(type.versions))
      throw new Error(`event_types.${name}.versions must be an object`);
  }
  return document as unknown as CatalogueFile;
}

const DEFAULTS: Json = {
  description: '',
  changelog: '',
  schema: null,
  example: null,
  deprecated: false,
  validation: null,
  status: 'active',
  sunset_at: null,
};

/** Leaves out what has its default, so that files stay short. */
export function withoutDefaults(fields: Json): Json {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => !(name in DEFAULTS && DEFAULTS[name] === value)),
  );
}
