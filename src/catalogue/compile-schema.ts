/**
 * Compiles schemas with Ajv. A schema is normalized first (`normalize-schema.ts`), and every step of a check takes from a
 * budget (`step-budget.ts`), so that neither a schema nor a payload can keep the process busy.
 */
import { _, Ajv2020, type ErrorObject, type KeywordCxt } from 'ajv/dist/2020.js';
import type { FieldError } from '../domain/problem.ts';
import { formats } from './formats.ts';
import { IN_PLACE_LISTS, isObject, type Json, type JsonSchema } from './keywords.ts';
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
    // This keyword runs before all others.
    before: 'type',
    schemaType: 'number',
    code({ gen, data, schema, parentSchema }: KeywordCxt) {
      const isMeasured = parentSchema.minLength !== undefined || parentSchema.maxLength !== undefined;
      const cost = isMeasured
        ? _`${schema} + (typeof ${data} == "string" ? ${data}.length / ${CHARACTERS_PER_STEP} : 0)`
        : _`${schema}`;
      const steps = gen.scopeValue('obj', { ref: budget });
      gen.code(_`${steps}.take(${cost})`);
      const visits = keyVisitsOf(parentSchema as Json);
      if (visits > 0) gen.code(_`${steps}.takeKeys(${data}, ${visits})`);
      if (parentSchema.contains !== undefined)
        gen.code(_`if (Array.isArray(${data})) ${steps}.take(${data}.length / ${ITEMS_PER_STEP})`);
    },
  });
  replaceComparisons(ajv);
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

/** The built-in ones visit the keys of the payload once for each object that they allow. */
function replaceComparisons(ajv: Ajv2020): void {
  const code =
    (allowedBy: (schema: unknown) => readonly unknown[]) =>
    (cxt: KeywordCxt): void => {
      const isAmong = cxt.gen.scopeValue('func', { ref: matcherOf(allowedBy(cxt.schema)) });
      cxt.pass(_`${isAmong}(${cxt.data})`);
    };
  ajv.removeKeyword('const').addKeyword({
    keyword: 'const',
    code: code((value) => [value]),
    error: {
      message: 'must be equal to constant',
      params: ({ schemaCode }) => _`{allowedValue: ${schemaCode}}`,
    },
  });
  ajv.removeKeyword('enum').addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    code: code((values) => values as readonly unknown[]),
    error: {
      message: 'must be equal to one of the allowed values',
      params: ({ schemaCode }) => _`{allowedValues: ${schemaCode}}`,
    },
  });
}

const isCompound = (value: unknown): boolean => typeof value === 'object' && value !== null;

/** Returns a function that tells whether a value is one of `allowed`. */
function matcherOf(allowed: readonly unknown[]): (value: unknown) => boolean {
  const simple = new Set(allowed.filter((value) => !isCompound(value)));
  const compound = new Set(allowed.filter(isCompound).map(canonicalJson));
  return (value) => {
    if (!isCompound(value)) return simple.has(value);
    if (compound.size === 0) return false;
    budget.takeAll(value);
    return compound.has(canonicalJson(value));
  };
}

/** Adds the cost of its own keywords to every part of the schema. */
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
const ITEMS_PER_STEP = 8;

/** What a part of the schema costs with any payload. Booleans in lists count here, because they have no step of their own. */
function costOf(schema: Json): number {
  const sizeOf = (data: unknown): number =>
    data === undefined ? 0 : Math.ceil(JSON.stringify(data).length / BYTES_PER_STEP);
  const lengthOf = (keyword: string): number =>
    Object.keys((schema[keyword] as object | undefined) ?? {}).length;
  const counted = [
    'required',
    'properties',
    'patternProperties',
    'dependentSchemas',
    'prefixItems',
    ...IN_PLACE_LISTS,
  ];
  return (
    1 +
    counted.reduce((sum, keyword) => sum + lengthOf(keyword), 0) +
    ['enum', 'const', 'dependentRequired'].reduce((sum, keyword) => sum + sizeOf(schema[keyword]), 0)
  );
}

const VISITS_KEYS = [
  'minProperties',
  'maxProperties',
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
];

/** How often a check of the part visits every key of an object. */
function keyVisitsOf(schema: Json): number {
  const patterns = Object.keys((schema.patternProperties as Json | undefined) ?? {}).length;
  return patterns + VISITS_KEYS.filter((keyword) => schema[keyword] !== undefined).length;
}

function isUnique(items: readonly unknown[]): boolean {
  const seen = new Set<string>();
  for (const item of items) {
    budget.takeAll(item);
    const text = canonicalJson(item);
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
  // If several alternatives fail, the last error is about all of them. Put it first.
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

/** Names of properties come from the payload. PostgreSQL stores neither U+0000 nor halves of surrogate pairs. */
const shorten = (text: string, length: number): string =>
  (text.length <= length ? text : `${text.slice(0, length - 1)}…`).replaceAll('\0', '\ufffd').toWellFormed();

/** `/items/0/id` → `data.items[0].id` */
export function pathOf(field: string, pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, part) => (/^\d+$/.test(part) ? `${path}[${part}]` : `${path}.${part}`), field);
}
