/** Reads JSON Schemas that users write: checks them against their meta-schema and their bounds, and compiles them. */
import { Errors, Meta } from 'typebox/schema';
import { type FieldError, invalidFields } from '../domain/problem.ts';
import { type CompiledSchema, compileSchema, pathOf } from './compile-schema.ts';
import { isObject, type Json, type JsonSchema } from './keywords.ts';
import { type NormalizedSchema, normalizeSchema } from './normalize-schema.ts';

type Found = ReturnType<typeof Errors>[1][number];

const DRAFTS: Readonly<Record<string, keyof typeof Meta>> = {
  'https://json-schema.org/draft/2020-12/schema': 'https://json-schema.org/draft/2020-12/schema',
  'http://json-schema.org/draft-07/schema': 'http://json-schema.org/draft-07/schema#',
};
const NEWEST = 'https://json-schema.org/draft/2020-12/schema';

const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 200;
const MAX_ERRORS = 10;

/** Schemas that were read: it takes up to 100 ms, and one request compares the same schema several times. */
const read = new WeakMap<object, NormalizedSchema>();

/**
 * Returns the schema in its normalized form. Throws `invalid` with the place of each error if it is not usable. Do not change
 * the schema afterwards.
 */
export function readSchema(schema: unknown, field: string): NormalizedSchema {
  if (typeof schema !== 'object' || schema === null) return readNew(schema, field);
  let known = read.get(schema);
  if (known === undefined) {
    known = readNew(schema, field);
    read.set(schema, known);
  }
  return known;
}

function readNew(schema: unknown, field: string): NormalizedSchema {
  checkSize(schema, field);
  const errors = checkDraft(schema, field);
  if (errors.length > 0) throw invalid(errors);
  const normalized = normalizeSchema(schema, field);
  if (normalized.errors !== null) throw invalid(normalized.errors);
  return normalized.schema;
}

/** Throws `invalid` with the place of each error if the schema is not usable, or if `example` does not match it. */
export function checkSchema(schema: unknown, example: unknown, field = 'schema'): void {
  const compiled = compileSchema(readSchema(schema, field), 'example');
  if (example === null) return;
  const errors = compiled.check(example);
  if (errors.length > 0) throw invalid(errors);
}

/** Compiles a schema that was stored. Throws `invalid` if it is not usable. */
export const compileStored = (schema: JsonSchema): CompiledSchema =>
  compileSchema(readSchema(schema, 'schema'), 'data');

/** Throws `invalid` if the value is too large or nested too deeply. */
export function checkSize(value: unknown, field: string): void {
  if (depthExceeds(value, MAX_DEPTH))
    throw invalid([{ path: field, message: `is nested deeper than ${MAX_DEPTH} levels` }]);
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES)
    throw invalid([{ path: field, message: `must be at most ${MAX_BYTES} bytes of JSON` }]);
}

/** Without recursion: the value may be nested deeper than the stack. */
function depthExceeds(value: unknown, max: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > max) return true;
    level = level.flatMap((part) =>
      typeof part === 'object' && part !== null ? Object.values(part as object) : [],
    );
  }
  return false;
}

function checkDraft(schema: unknown, field: string): FieldError[] {
  const named = isObject(schema) && schema.$schema !== undefined ? schema.$schema : NEWEST;
  const draft = typeof named === 'string' ? DRAFTS[named.replace(/#$/, '')] : undefined;
  if (draft === undefined)
    return [{ path: `${field}.$schema`, message: 'must name draft 2020-12 or draft-07' }];
  const repeated = findRepetition(schema, field);
  return repeated === null ? findErrors(Meta[draft], schema, field) : [repeated];
}

/** Keywords whose lists must not repeat anything. */
const LISTS = new Set(['required', 'type', 'dependentRequired', 'dependencies']);
const MAX_REPETITIONS = 100;

/**
 * Returns an error for the first list that repeats very much. The check against the meta-schema would take seconds for it,
 * because its time grows with the square of the repetitions.
 */
function findRepetition(schema: unknown, path: string, isList = false): FieldError | null {
  if (typeof schema !== 'object' || schema === null) return null;
  if (isList && Array.isArray(schema)) {
    const distinct = new Set(schema.map((item) => (typeof item === 'object' ? JSON.stringify(item) : item)));
    if (schema.length - distinct.size > MAX_REPETITIONS)
      return { path, message: 'must not have duplicate items' };
  }
  for (const [name, part] of Object.entries(schema)) {
    // `dependentRequired` and `dependencies` have one list for each name.
    const isPartList = LISTS.has(name) || (isList && !Array.isArray(schema));
    const error = findRepetition(
      part,
      Array.isArray(schema) ? `${path}[${name}]` : `${path}.${name}`,
      isPartList,
    );
    if (error !== null) return error;
  }
  return null;
}

function findErrors(schema: unknown, value: unknown, field: string): FieldError[] {
  const [, found] = Errors(schema as Json, value);
  const hasDeeper = (path: string) => found.some((other) => other.instancePath.startsWith(`${path}/`));
  const hasList = (path: string) =>
    found.some(({ keyword, instancePath }) => keyword === 'enum' && instancePath === path);
  return (
    found
      .filter(({ keyword, instancePath }) => keyword !== 'additionalProperties' || !hasDeeper(instancePath))
      // Of several alternatives, the list of allowed values is the most helpful error.
      .filter(
        ({ keyword, instancePath }) =>
          !((keyword === 'type' || keyword === 'anyOf') && hasList(instancePath)),
      )
      .map((error) => ({ path: pathOf(field, error.instancePath), message: messageOf(error) }))
  );
}

const MAX_LIST_LENGTH = 200;

function messageOf({ keyword, message, params }: Found): string {
  if (keyword === 'boolean') return 'is not allowed by the schema';
  if (keyword !== 'enum') return message;
  const list = (params as { allowedValues: unknown[] }).allowedValues.map((value) => JSON.stringify(value));
  const text = list.join(', ');
  return text.length <= MAX_LIST_LENGTH ? `must be one of ${text}` : message;
}

function invalid(found: readonly FieldError[]) {
  const unique = [...new Map(found.map((error) => [`${error.path} ${error.message}`, error])).values()];
  return invalidFields(unique.slice(0, MAX_ERRORS));
}
