/**
 * Checks JSON Schemas that users write. Schemas are interpreted, never compiled to code, and nothing is fetched: a
 * reference must point into the schema itself.
 */
import { Errors, Meta, Pointer } from 'typebox/schema';
import { type FieldError, Problem } from '../domain/problem.ts';

type Json = Readonly<Record<string, unknown>>;
type Found = ReturnType<typeof Errors>[1][number];

const DRAFTS: Readonly<Record<string, keyof typeof Meta>> = {
  'https://json-schema.org/draft/2020-12/schema': 'https://json-schema.org/draft/2020-12/schema',
  'http://json-schema.org/draft-07/schema': 'http://json-schema.org/draft-07/schema#',
};
const NEWEST = 'https://json-schema.org/draft/2020-12/schema';

const MAX_BYTES = 64 * 1024;
const MAX_ERRORS = 10;

/** Throws `invalid` with the place of each error if `schema` is not a usable JSON Schema. */
export function checkSchema(schema: unknown, field: string): void {
  checkSize(schema, field);
  for (const errors of [checkDraft(schema, field), findBrokenParts(schema, schema, field)])
    if (errors.length > 0) throw invalid(errors);
}

/** Throws `invalid` with the place of each error if `value` does not match the schema, which must be a checked one. */
export function checkAgainst(schema: unknown, value: unknown, field: string): void {
  let errors: FieldError[];
  try {
    errors = findErrors(schema, value, field);
  } catch (error) {
    // An endless recursion, such as {"$ref": "#"}.
    if (!(error instanceof RangeError)) throw error;
    throw invalid([{ path: 'schema', message: 'must not refer to itself without end' }]);
  }
  if (errors.length > 0) throw invalid(errors);
}

export function checkSize(value: unknown, field: string): void {
  if (Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES)
    throw invalid([{ path: field, message: `must be at most ${MAX_BYTES} bytes of JSON` }]);
}

function checkDraft(schema: unknown, field: string): FieldError[] {
  const named = isObject(schema) && schema.$schema !== undefined ? schema.$schema : NEWEST;
  const draft = typeof named === 'string' ? DRAFTS[named.replace(/#$/, '')] : undefined;
  if (draft === undefined)
    return [{ path: `${field}.$schema`, message: 'must name draft 2020-12 or draft-07' }];
  return findErrors(Meta[draft], schema, field);
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

/** Keywords whose value is a map of schemas by name. */
const SCHEMA_MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose value is data, not a schema. */
const DATA = new Set(['const', 'enum', 'default', 'examples', 'required', 'dependentRequired']);

/** What the meta-schema does not check: invalid regular expressions, and references to nothing. */
function findBrokenParts(root: unknown, schema: unknown, path: string): FieldError[] {
  if (Array.isArray(schema))
    return schema.flatMap((entry, index) => findBrokenParts(root, entry, `${path}[${index}]`));
  if (!isObject(schema)) return [];
  return Object.entries(schema).flatMap(([keyword, value]) => {
    const at = `${path}.${keyword}`;
    if (DATA.has(keyword)) return [];
    if (keyword === 'pattern') return checkPattern(value, at);
    if (keyword === '$ref') return checkReference(root, value, at);
    if (!SCHEMA_MAPS.has(keyword) || !isObject(value)) return findBrokenParts(root, value, at);
    return Object.entries(value).flatMap(([name, entry]) => [
      ...(keyword === 'patternProperties' ? checkPattern(name, `${at}.${name}`) : []),
      ...findBrokenParts(root, entry, `${at}.${name}`),
    ]);
  });
}

function checkPattern(pattern: unknown, path: string): FieldError[] {
  if (typeof pattern !== 'string') return [];
  try {
    new RegExp(pattern, 'u');
    return [];
  } catch {
    return [{ path, message: 'is not a valid regular expression' }];
  }
}

function checkReference(root: unknown, reference: unknown, path: string): FieldError[] {
  if (typeof reference !== 'string') return [];
  if (!/^#(\/|$)/.test(reference))
    return [{ path, message: 'must point into this schema, such as "#/$defs/name"' }];
  try {
    if (Pointer.Has(root as Json, decodeURIComponent(reference.slice(1)))) return [];
  } catch {
    // An invalid percent-encoding.
  }
  return [{ path, message: 'points to nothing in this schema' }];
}

function invalid(found: readonly FieldError[]): Problem {
  const unique = [...new Map(found.map((error) => [`${error.path} ${error.message}`, error])).values()];
  const errors = unique.slice(0, MAX_ERRORS);
  return new Problem('invalid', errors.map(({ path, message }) => `${path}: ${message}`).join('; '), {
    errors,
  });
}

/** `/items/0/id` → `example.items[0].id` */
function pathOf(field: string, pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : `${path}.${part}`), field);
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
