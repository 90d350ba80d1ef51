/**
 * Compiles schemas with Ajv. A schema is normalized first (`normalize-schema.ts`), and every step of a check takes from a
 * budget (`step-budget.ts`), so that neither a schema nor a payload can keep the process busy.
 */
import { _, Ajv2020, type ErrorObject, type KeywordCxt } from 'ajv/dist/2020.js';
import type { FieldError } from '../domain/problem.ts';
import { formats } from './formats.ts';
import { isObject, type Json, type JsonSchema } from './keywords.ts';
import type { NormalizedSchema } from './normalize-schema.ts';
import { compilePattern } from './patterns.ts';
import { budget, OverBudgetError } from './step-budget.ts';

export interface CompiledSchema {
  /** Returns what is wrong with the value: an empty list if it matches the schema. Does not throw. */
  check(value: unknown): readonly FieldError[];
}

const STEP_KEYWORD = 'posthornStep';
const MAX_ERRORS = 10;
const MAX_PATH_LENGTH = 200;
const MAX_MESSAGE_LENGTH = 300;
const CHARACTERS_PER_STEP = 32;

/** `field` is what errors call the value. */
export function compileSchema({ root, definitions }: NormalizedSchema, field: string): CompiledSchema {
  const validate = newAjv().compile({
    ...(isObject(root) ? (withSteps(root) as Json) : { allOf: [root] }),
    $defs: Object.fromEntries([...definitions].map(([name, part]) => [name, withSteps(part)])),
  });
  return {
    check(value) {
      budget.refill();
      try {
        if (validate(value)) return [];
        return toFieldErrors(validate.errors ?? [], field);
      } catch (error) {
        // RangeError: the value is nested deeper than the stack.
        if (!(error instanceof OverBudgetError || error instanceof RangeError)) throw error;
        return [{ path: field, message: `cannot be checked: ${error.message}` }];
      }
    },
  };
}

function newAjv(): Ajv2020 {
  const regExp = Object.assign((pattern: string) => compilePattern(pattern), { code: 'compilePattern' });
  const ajv = new Ajv2020({
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    strict: false,
    logger: false,
    inlineRefs: false,
    ownProperties: true,
    loopRequired: 20,
    loopEnum: 20,
    // Optimizing takes longer than it saves.
    code: { regExp, optimize: false },
    formats: Object.fromEntries(
      Object.entries(formats).map(([name, isValid]) => [
        name,
        (text: string) => {
          budget.take(1 + text.length / CHARACTERS_PER_STEP);
          return isValid(text);
        },
      ]),
    ),
  });
  ajv.addKeyword({
    keyword: STEP_KEYWORD,
    // Before all others.
    before: 'type',
    schemaType: 'number',
    code({ gen, data, schema, parentSchema }: KeywordCxt) {
      const isMeasured = parentSchema.minLength !== undefined || parentSchema.maxLength !== undefined;
      const cost = isMeasured
        ? _`${schema} + (typeof ${data} == "string" ? ${data}.length / ${CHARACTERS_PER_STEP} : 0)`
        : _`${schema}`;
      gen.code(_`${gen.scopeValue('obj', { ref: budget })}.take(${cost})`);
    },
  });
  // The built-in one compares every item with every other.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isWanted: boolean, items: readonly unknown[]) => !isWanted || isUnique(items),
    error: { message: 'must NOT have duplicate items' },
  });
  return ajv;
}

/** Adds to every part what its own keywords cost. */
function withSteps(schema: JsonSchema): JsonSchema {
  if (!isObject(schema)) return schema;
  const copy: Record<string, unknown> = { [STEP_KEYWORD]: costOf(schema) };
  for (const [keyword, value] of Object.entries(schema)) copy[keyword] = withStepsIn(keyword, value);
  return copy;
}

const DATA = new Set(['const', 'enum', 'required', 'dependentRequired', 'type']);
const MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas']);

function withStepsIn(keyword: string, value: unknown): unknown {
  if (DATA.has(keyword)) return value;
  if (MAPS.has(keyword))
    return Object.fromEntries(
      Object.entries(value as Json).map(([name, part]) => [name, withSteps(part as JsonSchema)]),
    );
  if (Array.isArray(value)) return value.map(withSteps);
  return isObject(value) ? withSteps(value) : value;
}

const BYTES_PER_STEP = 16;

function costOf(schema: Json): number {
  const { required = [], properties = {}, enum: values, const: value, dependentRequired } = schema;
  const sizeOf = (data: unknown): number =>
    data === undefined ? 0 : Math.ceil(JSON.stringify(data).length / BYTES_PER_STEP);
  return (
    1 +
    (required as unknown[]).length +
    Object.keys(properties as Json).length +
    sizeOf(values) +
    sizeOf(value) +
    sizeOf(dependentRequired)
  );
}

function isUnique(items: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    const text = canonicalJson(item);
    budget.take(1 + text.length / BYTES_PER_STEP);
    if (seen.has(text)) return false;
    seen.add(text);
  }
  return true;
}

/** The same text for equal values. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    isObject(part) ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}

function toFieldErrors(found: readonly ErrorObject[], field: string): FieldError[] {
  // Of alternatives the last error is the one about all of them. It comes first.
  const errors = found.toReversed().map((error) => {
    const { path, message } = describe(error, field);
    return { path: shorten(path, MAX_PATH_LENGTH), message: shorten(message, MAX_MESSAGE_LENGTH) };
  });
  const unique = new Map(errors.map((error) => [`${error.path} ${error.message}`, error]));
  return [...unique.values()].slice(0, MAX_ERRORS);
}

function describe({ keyword, instancePath, params, message }: ErrorObject, field: string): FieldError {
  const path = pathOf(field, instancePath);
  const { missingProperty, additionalProperty, unevaluatedProperty, allowedValues, allowedValue } =
    params as Readonly<Record<string, unknown>>;
  if (typeof missingProperty === 'string')
    return { path: `${path}.${missingProperty}`, message: 'is required' };
  const extra = additionalProperty ?? unevaluatedProperty;
  if (typeof extra === 'string') return { path: `${path}.${extra}`, message: 'is not allowed by the schema' };
  if (keyword === 'false schema') return { path, message: 'is not allowed by the schema' };
  if (keyword === 'enum')
    return {
      path,
      message: `must be one of ${(allowedValues as unknown[]).map((each) => JSON.stringify(each)).join(', ')}`,
    };
  if (keyword === 'const') return { path, message: `must be ${JSON.stringify(allowedValue)}` };
  return { path, message: (message ?? 'does not match the schema').replace('must NOT', 'must not') };
}

const shorten = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;

/** `/items/0/id` → `data.items[0].id` */
export function pathOf(field: string, pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : `${path}.${part}`), field);
}
