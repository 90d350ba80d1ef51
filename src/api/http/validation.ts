import { type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Value } from 'typebox/value';
import { type FieldError, invalidField, Problem } from '../../domain/problem.ts';
import { isStorable } from './read-json.ts';

interface SchemaError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

const MESSAGE = Symbol('message');
/** The key under which a schema has the one that the OpenAPI document shows instead. */
export const DOCUMENTED = Symbol('documented');

/**
 * An option of a schema: the OpenAPI document shows `schema` instead. Use it for rules that the control plane checks with a
 * better error message than the validator.
 */
export const documentedAs = (schema: TSchema): Record<string, unknown> => ({ [DOCUMENTED]: schema });

/**
 * An option of a schema: the error message for a value that does not match, if the validator's own message would not
 * help. The key is a symbol, so that it is not part of the OpenAPI document.
 */
export const withMessage = (message: string): Record<string, unknown> => ({ [MESSAGE]: message });

const LATER_CHECK = Symbol('laterCheck');

/**
 * A schema option of a text at the top level of a body. `check` returns the error that the control plane would give, or null.
 * It is called only if the request has other errors, so that one answer names all. Otherwise the control plane answers.
 */
export const withLaterCheck = (check: (text: string) => string | null): Record<string, unknown> => ({
  [LATER_CHECK]: check,
});

const LATER_CHECKS = Symbol('laterChecks');

/**
 * The same for a body: `check` gets the fields that match their schemas, and returns what the control plane will say about
 * them.
 */
export const withLaterChecks = (
  check: (valid: Readonly<Record<string, unknown>>) => readonly FieldError[],
): Record<string, unknown> => ({ [LATER_CHECKS]: check });

/** PUT and PATCH require a body: without it, PUT would reset every setting. Other methods count none as `{}`. */
export const needsBody = (method: string | undefined): boolean => method === 'PUT' || method === 'PATCH';

/** Compiles a schema of `part` of a request. The same schemas describe requests in the OpenAPI document. */
export function compileSchema(
  schema: TSchema,
  part: string,
  { bodyRequired = false }: { readonly bodyRequired?: boolean } = {},
): (data: unknown) => { value: unknown } | { error: Error } {
  const validator = Compile(schema);
  return (data) => {
    const isText = part === 'querystring' || part === 'params';
    // Fastify passes null for a missing body. `readJson` refuses a body that is `null`.
    if (bodyRequired && part === 'body' && data === null)
      return { error: invalidField('body', 'is required: send a JSON object') };
    const value = isText ? fromText(schema, data) : (data ?? {});
    // First, because the validator visits every entry.
    const excess = part === 'body' ? findExcess(schema, value, '') : null;
    if (excess !== null) return { error: excess };
    if (validator.Check(value)) return part === 'body' ? { value } : checkText(value as object, part);
    const errors = [...validator.Errors(value)] as SchemaError[];
    if (part !== 'body' && errors.every((error) => isForHandler(error, part)))
      return checkText(value as object, part);
    return { error: toProblem(errors, schema, value) };
  };
}

/** A few entries too many are left to the validator, which names all errors of the request. */
const TOLERATED_EXCESS = 20;
/** The validator reports at most eight errors: one for each unknown field, and then one that names them. */
const TOLERATED_UNKNOWN = 7;
const MAX_NAMED_FIELDS = 10;

interface CountedSchema {
  readonly type?: unknown;
  readonly anyOf?: readonly CountedSchema[];
  readonly properties?: Readonly<Record<string, CountedSchema>>;
  readonly additionalProperties?: unknown;
  readonly maxItems?: number;
  readonly maxProperties?: number;
}

/**
 * Counts before the validator runs, because that visits every entry. Returns a problem for the first part of a body
 * that has far too many entries.
 */
function findExcess(schema: CountedSchema, value: unknown, path: string): Problem | null {
  if (typeof value !== 'object' || value === null) return null;
  const { anyOf, properties, maxItems, maxProperties } = schema;
  // Only `Nullable`: in other unions it is not known which alternative the caller meant.
  if (anyOf?.length === 2 && anyOf[1]!.type === 'null') return findExcess(anyOf[0]!, value, path);
  const limit = Array.isArray(value) ? maxItems : maxProperties;
  const names = Object.keys(value);
  if (limit !== undefined && names.length > limit + TOLERATED_EXCESS)
    return invalidField(path || 'body', `must have at most ${limit} entries, has ${names.length}`);
  if (Array.isArray(value) || properties === undefined) return null;
  if (schema.additionalProperties === false) {
    const unknown = names.filter((name) => !Object.hasOwn(properties, name));
    if (unknown.length > TOLERATED_UNKNOWN) return tooManyUnknown(unknown, path);
  }
  for (const [name, part] of Object.entries(properties)) {
    const found = findExcess(part, (value as Record<string, unknown>)[name], joinPath(path, name));
    if (found !== null) return found;
  }
  return null;
}

const joinPath = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

function tooManyUnknown(names: readonly string[], path: string): Problem {
  const named = names.slice(0, MAX_NAMED_FIELDS).map((name) => joinPath(path, name.slice(0, 100)));
  const more = names.length > named.length ? ` and ${names.length - named.length} more` : '';
  return new Problem('invalid', `Unknown fields: ${named.join(', ')}${more}.`, {
    errors: named.map((field) => ({ path: field, message: 'is not a field of this request' })),
  });
}

/** The routes answer 404 to a malformed id and 400 to a malformed cursor: these patterns are for the OpenAPI document only. */
const isForHandler = ({ keyword, instancePath }: SchemaError, part: string): boolean =>
  part === 'params' || (keyword === 'pattern' && instancePath === '/cursor');

/** Refuses text that cannot be stored. Bodies are checked when they are read (`read-json.ts`). */
function checkText(values: object, part: string): { value: unknown } | { error: Error } {
  for (const [name, value] of Object.entries(values)) {
    // A cursor is decoded, and never stored or searched for.
    if (name === 'cursor' || typeof value !== 'string' || isStorable(value)) continue;
    if (part === 'params') return { error: new Problem('not_found', `No object has this ${name}.`) };
    return { error: invalidField(name, 'must not contain NUL or an unpaired surrogate') };
  }
  return { value: values };
}

/** Converts the text of a query string to numbers and booleans: "50" becomes 50; "1.5", "0x10" and "+5" stay text. */
function fromText(schema: TSchema, data: unknown): unknown {
  const given = data as Record<string, unknown>;
  const converted = Value.Convert(schema, { ...given }) as Record<string, unknown>;
  for (const [name, value] of Object.entries(converted)) {
    if (typeof value === 'number' && String(value) !== given[name]) converted[name] = given[name];
  }
  return converted;
}

function toProblem(found: readonly SchemaError[], schema: TSchema, value: unknown): Problem {
  const errors = new Map<string, FieldError>();
  // Report the deepest error: "retry.schedule[0] must be a number" instead of "retry does not match".
  for (const error of found.toSorted((a, b) => b.instancePath.length - a.instancePath.length)) {
    for (const field of toFieldErrors(error, schema)) {
      if (
        [...errors.keys()].some(
          (path) =>
            path === field.path || path.startsWith(`${field.path}.`) || path.startsWith(`${field.path}[`),
        )
      )
        continue;
      errors.set(field.path, field);
    }
  }
  const later = findLaterErrors(schema, value, [...errors.keys()]).filter(({ path }) => !errors.has(path));
  const list = [...later, ...[...errors.values()].toReversed()];
  // The validator has reported only that values are not allowed, and nothing about the object that contains them.
  if (list.length === 0)
    list.push(
      ...found.map(({ instancePath }) => ({
        path: toPath(instancePath) || 'body',
        message: 'is not a field of this request',
      })),
    );
  return new Problem('invalid', list.map(({ path, message }) => `${path}: ${message}`).join('; '), {
    errors: list,
  });
}

/** Runs the `withLaterCheck` of each field, and the `withLaterChecks` of the body. */
function findLaterErrors(schema: TSchema, value: unknown, failedPaths: readonly string[]): FieldError[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  type Field = { readonly [LATER_CHECK]?: (text: string) => string | null };
  const { properties = {} } = schema as { readonly properties?: Readonly<Record<string, Field>> };
  const given = value as Readonly<Record<string, unknown>>;
  const ofFields = Object.entries(properties).flatMap(([path, field]) => {
    const text = given[path];
    const message = typeof text === 'string' ? (field[LATER_CHECK]?.(text) ?? null) : null;
    return message === null ? [] : [{ path, message }];
  });
  const check = (schema as { readonly [LATER_CHECKS]?: Parameters<typeof withLaterChecks>[0] })[LATER_CHECKS];
  if (check === undefined) return ofFields;
  const failed = new Set(failedPaths.map((path) => path.split(/[.[]/)[0]!));
  const valid = Object.entries(given).filter(([name]) => name in properties && !failed.has(name));
  return [...ofFields, ...check(Object.fromEntries(valid))];
}

/** Keywords whose schemas describe a part of the value. */
const PARTS = new Set(['properties', 'patternProperties', 'items']);

/** The `withMessage` of the schema that the error is about, or of the union that it belongs to. */
function messageFor({ keyword, schemaPath }: SchemaError, root: TSchema): string | undefined {
  if (keyword === 'required' || keyword === 'additionalProperties') return undefined;
  type Node = { readonly [name: string]: Node } & { readonly [MESSAGE]?: string };
  let node: Node | undefined = root as unknown as Node;
  let message = node[MESSAGE];
  for (const step of schemaPath.split('/').slice(1)) {
    if (PARTS.has(step)) message = undefined;
    node = node?.[step.replaceAll('~1', '/').replaceAll('~0', '~')];
    message = node?.[MESSAGE] ?? message;
  }
  return message;
}

function toFieldErrors(error: SchemaError, schema: TSchema): FieldError[] {
  const base = toPath(error.instancePath);
  const join = (name: string) => (base === '' ? name : `${base}.${name}`);
  const params = error.params as Record<string, unknown>;
  const message = messageFor(error, schema);
  if (message !== undefined) return [{ path: base || 'body', message }];
  switch (error.keyword) {
    case 'required':
      return (params.requiredProperties as string[]).map((name) => ({
        path: join(name),
        message: 'is required',
      }));
    case 'additionalProperties':
      return (params.additionalProperties as string[]).map((name) => ({
        path: join(name),
        message: 'is not a field of this request',
      }));
    case 'boolean':
      return [];
    case 'enum':
      return [
        {
          path: base || 'body',
          message: `must be one of ${(params.allowedValues as unknown[]).map((v) => JSON.stringify(v)).join(', ')}`,
        },
      ];
    case 'const':
      return [{ path: base || 'body', message: `must be ${JSON.stringify(params.allowedValue)}` }];
    default:
      return [{ path: base || 'body', message: error.message }];
  }
}

/** `/retry/schedule/0` → `retry.schedule[0]` */
function toPath(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce(
      (path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : path === '' ? part : `${path}.${part}`),
      '',
    );
}

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
