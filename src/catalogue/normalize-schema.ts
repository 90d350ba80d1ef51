/**
 * Turns a schema that a user wrote into a small, safe form of draft 2020-12:
 *
 * - Only keywords that Posthorn understands are left, so that no extension of a validator can be switched on.
 * - Draft-07 becomes 2020-12.
 * - Every reference points to an entry of `$defs`. References must stay inside the schema: nothing is fetched.
 * - Size, depth, number of parts and patterns are bounded.
 */
import type { FieldError } from '../domain/problem.ts';
import {
  ASSERTIONS,
  CHILD,
  CHILD_MAPS,
  IN_PLACE,
  IN_PLACE_LISTS,
  isObject,
  type Json,
  type JsonSchema,
} from './keywords.ts';
import { compilePattern } from './patterns.ts';

const MAX_PARTS = 500;
const MAX_SCHEMA_DEPTH = 64;
/** The maximum size of all patterns together. Compiling them takes up to 100 ms. */
const MAX_PROGRAM_SIZE = 40_000;

export interface NormalizedSchema {
  readonly root: JsonSchema;
  /** The targets of references, by the name that `$ref` uses after `#/$defs/`. */
  readonly definitions: ReadonlyMap<string, JsonSchema>;
}

export type NormalizeResult =
  | { readonly schema: NormalizedSchema; readonly errors: null }
  | { readonly schema: null; readonly errors: readonly FieldError[] };

/** `field` is the name of the schema in errors. The schema must match its meta-schema. */
export function normalizeSchema(schema: unknown, field: string): NormalizeResult {
  const normalizer = new Normalizer(schema, field);
  const normalized = normalizer.run();
  if (normalizer.errors.length > 0) return { schema: null, errors: normalizer.errors };
  if (findEndlessReference(normalized))
    return { schema: null, errors: [{ path: field, message: 'must not refer to itself without end' }] };
  return { schema: normalized, errors: null };
}

export const REFERENCE_PREFIX = '#/$defs/';

class Normalizer {
  readonly errors: FieldError[] = [];
  readonly #root: unknown;
  readonly #field: string;
  readonly #isDraft07: boolean;
  /** By pointer: the name of the definition. */
  readonly #names = new Map<string, string>();
  readonly #definitions = new Map<string, JsonSchema>();
  readonly #waiting: { readonly name: string; readonly target: unknown; readonly path: string }[] = [];
  #parts = 0;
  #programSize = 0;

  constructor(root: unknown, field: string) {
    this.#root = root;
    this.#field = field;
    this.#isDraft07 = isObject(root) && typeof root.$schema === 'string' && root.$schema.includes('draft-07');
  }

  run(): NormalizedSchema {
    const root = this.#normalizePart(this.#root, this.#field, 0);
    // Check unused definitions too, so that a mistake in them is reported.
    this.#checkUnusedDefinitions();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift())
      this.#definitions.set(next.name, this.#normalizePart(next.target, next.path, 0));
    return { root, definitions: this.#definitions };
  }

  #fail(path: string, message: string): true {
    this.errors.push({ path, message });
    return true;
  }

  #normalizePart(schema: unknown, path: string, depth: number): JsonSchema {
    // `true` costs nothing, so a schema may have any number of them.
    if (schema === true) return true;
    if (schema !== false && !isObject(schema))
      return this.#fail(path, 'must be a schema: an object or a boolean');
    this.#parts += 1;
    if (this.#parts === MAX_PARTS + 1)
      this.#fail(this.#field, `must have at most ${MAX_PARTS} parts, counting the targets of references`);
    if (depth === MAX_SCHEMA_DEPTH + 1) this.#fail(path, `is nested deeper than ${MAX_SCHEMA_DEPTH} levels`);
    if (this.#parts > MAX_PARTS || depth > MAX_SCHEMA_DEPTH) return true;
    if (schema === false) return false;
    this.#checkUnsupported(schema, path, depth);
    const reference = this.#normalizeReference(schema, path);
    // In draft-07 a reference replaces everything beside it.
    if (this.#isDraft07 && reference !== null) return reference;
    return {
      ...reference,
      ...this.#copyAssertions(schema, path),
      ...this.#normalizeInPlace(schema, path, depth),
      ...this.#normalizeChildren(schema, path, depth),
    };
  }

  #checkUnsupported(schema: Json, path: string, depth: number): void {
    for (const keyword of ['$dynamicRef', '$recursiveRef'])
      if (schema[keyword] !== undefined)
        this.#fail(`${path}.${keyword}`, 'is not supported: use $ref with a place such as "#/$defs/name"');
    if (depth > 0 && schema.$id !== undefined)
      this.#fail(`${path}.$id`, 'is supported at the root of the schema only');
  }

  #copyAssertions(schema: Json, path: string): Json {
    const found: Record<string, unknown> = {};
    for (const keyword of ASSERTIONS) if (schema[keyword] !== undefined) found[keyword] = schema[keyword];
    if (found.pattern !== undefined) this.#checkPattern(found.pattern, `${path}.pattern`);
    return found;
  }

  #normalizeInPlace(schema: Json, path: string, depth: number): Json {
    const found: Record<string, unknown> = {};
    const deeper = (value: unknown, at: string): JsonSchema => this.#normalizePart(value, at, depth + 1);
    for (const keyword of IN_PLACE)
      if (schema[keyword] !== undefined) found[keyword] = deeper(schema[keyword], `${path}.${keyword}`);
    for (const keyword of IN_PLACE_LISTS)
      if (Array.isArray(schema[keyword]))
        found[keyword] = schema[keyword].map((each, n) => deeper(each, `${path}.${keyword}[${n}]`));
    const dependent = new Map<string, JsonSchema>();
    for (const keyword of ['dependentSchemas', 'dependencies'])
      for (const [name, value] of entriesOf(schema[keyword]))
        if (!Array.isArray(value)) dependent.set(name, deeper(value, `${path}.${keyword}.${name}`));
    if (dependent.size > 0) found.dependentSchemas = safeRecord(dependent);
    const names = entriesOf(schema.dependencies).filter(([, value]) => Array.isArray(value));
    if (names.length > 0) found.dependentRequired = safeRecord(new Map(names));
    return found;
  }

  #normalizeChildren(schema: Json, path: string, depth: number): Json {
    const found: Record<string, unknown> = {};
    const deeper = (value: unknown, at: string): JsonSchema => this.#normalizePart(value, at, depth + 1);
    const { items, prefixItems, additionalItems } = schema;
    const hasList = Array.isArray(items);
    const list = hasList ? items : prefixItems;
    const listName = hasList ? 'items' : 'prefixItems';
    if (Array.isArray(list))
      found.prefixItems = list.map((each, n) => deeper(each, `${path}.${listName}[${n}]`));
    if (hasList && additionalItems !== undefined)
      found.items = deeper(additionalItems, `${path}.additionalItems`);
    for (const keyword of CHILD)
      if (schema[keyword] !== undefined && !(keyword === 'items' && hasList))
        found[keyword] = deeper(schema[keyword], `${path}.${keyword}`);
    for (const keyword of CHILD_MAPS) {
      if (!isObject(schema[keyword])) continue;
      const parts = new Map<string, JsonSchema>();
      for (const [name, value] of entriesOf(schema[keyword])) {
        const at = `${path}.${keyword}.${name}`;
        if (keyword === 'patternProperties') this.#checkPattern(name, at);
        parts.set(name, deeper(value, at));
      }
      found[keyword] = safeRecord(parts);
    }
    return found;
  }

  #checkPattern(pattern: unknown, path: string): void {
    if (typeof pattern !== 'string' || this.#programSize > MAX_PROGRAM_SIZE) return;
    try {
      this.#programSize += compilePattern(pattern).size;
      if (this.#programSize > MAX_PROGRAM_SIZE)
        this.#fail(this.#field, 'has too many or too large patterns: write them with smaller counts');
    } catch (error) {
      this.#fail(path, (error as Error).message);
    }
  }

  #normalizeReference({ $ref }: Json, path: string): Json | null {
    if (typeof $ref !== 'string') return null;
    const at = `${path}.$ref`;
    if (!/^#(\/|$)/.test($ref)) {
      this.#fail(at, 'must point into this schema, such as "#/$defs/name"');
      return null;
    }
    const known = this.#names.get($ref);
    if (known !== undefined) return { $ref: `${REFERENCE_PREFIX}${known}` };
    const target = this.#resolve($ref);
    if (target === undefined) {
      this.#fail(at, 'points to nothing in this schema');
      return null;
    }
    const name = `d${this.#names.size}`;
    this.#names.set($ref, name);
    this.#waiting.push({ name, target, path: targetPath(this.#field, $ref) });
    return { $ref: `${REFERENCE_PREFIX}${name}` };
  }

  #resolve(reference: string): unknown {
    let value: unknown = this.#root;
    try {
      for (const part of pointerParts(reference)) {
        const isKnown = Array.isArray(value) || isObject(value) ? Object.hasOwn(value, part) : false;
        if (!isKnown) return undefined;
        value = (value as Json)[part];
      }
    } catch {
      return undefined; // an invalid percent-encoding
    }
    return value;
  }

  #checkUnusedDefinitions(): void {
    if (!isObject(this.#root)) return;
    for (const keyword of ['$defs', 'definitions'])
      for (const [name, value] of entriesOf(this.#root[keyword])) {
        const pointer = `#/${keyword}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        if (!this.#names.has(pointer)) this.#normalizePart(value, `${this.#field}.${keyword}.${name}`, 1);
      }
  }
}

const entriesOf = (value: unknown): [string, unknown][] => (isObject(value) ? Object.entries(value) : []);

/** A record that may have a field named `__proto__`. */
const safeRecord = <T>(entries: ReadonlyMap<string, T>): Readonly<Record<string, T>> =>
  Object.fromEntries(entries);

function pointerParts(reference: string): string[] {
  return decodeURIComponent(reference.slice(1))
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function targetPath(field: string, reference: string): string {
  return pointerParts(reference).reduce(
    (path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : `${path}.${part}`),
    field,
  );
}

/** True if a schema refers to itself for the same value, such as {"$ref": "#"}: its check would never end. */
function findEndlessReference({ root, definitions }: NormalizedSchema): boolean {
  const done = new Set<JsonSchema>();
  const open = new Set<JsonSchema>();
  const visit = (schema: JsonSchema): boolean => {
    if (typeof schema === 'boolean' || done.has(schema)) return false;
    if (open.has(schema)) return true;
    open.add(schema);
    const isEndless = inPlaceParts(schema, definitions).some(visit);
    open.delete(schema);
    done.add(schema);
    return isEndless;
  };
  return visit(root) || [...definitions.values()].some(visit);
}

function inPlaceParts(schema: Json, definitions: NormalizedSchema['definitions']): JsonSchema[] {
  const parts: JsonSchema[] = [];
  const target = definitionOf(schema, definitions);
  if (target !== null) parts.push(target);
  for (const keyword of IN_PLACE)
    if (schema[keyword] !== undefined) parts.push(schema[keyword] as JsonSchema);
  for (const keyword of IN_PLACE_LISTS) parts.push(...((schema[keyword] as JsonSchema[] | undefined) ?? []));
  parts.push(...Object.values((schema.dependentSchemas as Record<string, JsonSchema> | undefined) ?? {}));
  return parts;
}

/** The schema that `$ref` points to. Null: there is no `$ref`. */
export function definitionOf(
  { $ref }: Json,
  definitions: NormalizedSchema['definitions'],
): JsonSchema | null {
  return typeof $ref === 'string' ? (definitions.get($ref.slice(REFERENCE_PREFIX.length)) ?? true) : null;
}
