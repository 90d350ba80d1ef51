/** Takes normalized schemas apart, for comparing them. */
import { canonicalJson } from './compile-schema.ts';
import { isObject, type Json, type JsonSchema } from './keywords.ts';
import { definitionOf, type NormalizedSchema } from './normalize-schema.ts';

/** Schemas that all hold for one value. */
export type Conjunction = readonly JsonSchema[];
type Definitions = NormalizedSchema['definitions'];

const MAX_ALTERNATIVES = 64;

/**
 * Returns lists of schemas: a value matches `parts` only if all schemas of at least one list hold. References, `allOf`, `anyOf`
 * and `oneOf` are resolved. Null: there are too many.
 */
export function alternativesOf(parts: Conjunction, definitions: Definitions): Conjunction[] | null {
  let alternatives: Conjunction[] = [[]];
  for (const part of parts) {
    const own = alternativesOfOne(part, definitions);
    if (own === null || alternatives.length * own.length > MAX_ALTERNATIVES) return null;
    alternatives = alternatives.flatMap((left) => own.map((right) => [...left, ...right]));
  }
  return alternatives;
}

function alternativesOfOne(schema: JsonSchema, definitions: Definitions): Conjunction[] | null {
  if (!isObject(schema)) return [schema === true ? [] : [schema]];
  const target = definitionOf(schema, definitions);
  const all = [...(target === null ? [] : [target]), ...((schema.allOf as JsonSchema[] | undefined) ?? [])];
  let alternatives = alternativesOf(all, definitions);
  for (const keyword of ['anyOf', 'oneOf']) {
    const options = schema[keyword] as JsonSchema[] | undefined;
    if (options === undefined || alternatives === null) continue;
    const expanded = options.map((option) => alternativesOfOne(option, definitions));
    if (expanded.includes(null)) return null;
    const choices = expanded.flatMap((each) => each!);
    if (alternatives.length * choices.length > MAX_ALTERNATIVES) return null;
    alternatives = alternatives.flatMap((left) => choices.map((right) => [...left, ...right]));
  }
  return alternatives?.map((each) => [schema, ...each]) ?? null;
}

const ALL_TYPES = ['null', 'boolean', 'object', 'array', 'number', 'string'];

/** The types that the keyword `type` allows. `number` includes `integer`. */
export function declaredTypes({ type }: Json): ReadonlySet<string> {
  if (type === undefined) return new Set(ALL_TYPES);
  return new Set(Array.isArray(type) ? (type as string[]) : [type as string]);
}

/** The types that a value can have if all of the schemas hold. `values`: what `findValues` returned for them. */
export function typesOf(schemas: readonly Json[], values: readonly unknown[] | null): ReadonlySet<string> {
  let types: ReadonlySet<string> = new Set(ALL_TYPES);
  for (const schema of schemas) types = intersect(types, declaredTypes(schema));
  return values === null ? types : intersect(types, new Set(values.map(typeOf)));
}

function intersect(one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> {
  const covers = (set: ReadonlySet<string>, type: string): boolean =>
    set.has(type) || (type === 'integer' && set.has('number'));
  return new Set([
    ...[...one].filter((type) => covers(other, type)),
    ...[...other].filter((type) => covers(one, type)),
  ]);
}

export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

/** The lists of values that `enum` and `const` of the schemas allow, the shortest first. */
export function valueListsOf(schemas: readonly Json[]): (readonly unknown[])[] {
  const lists = schemas.flatMap((schema) => [
    ...(Array.isArray(schema.enum) ? [schema.enum as unknown[]] : []),
    ...('const' in schema ? [[schema.const]] : []),
  ]);
  return lists.toSorted((one, other) => one.length - other.length);
}

/** The values that all of the lists allow. Null: there is no list. */
export function findValues([shortest, ...others]: readonly (readonly unknown[])[]):
  | readonly unknown[]
  | null {
  if (shortest === undefined || others.length === 0) return shortest ?? null;
  return shortest.filter((value) => others.every((list) => hasValue(list, value)));
}

/** By list: the texts of its values. Lists may be long, and are compared again and again. */
const texts = new WeakMap<readonly unknown[], ReadonlySet<string>>();

/** Whether the list has this value. */
export function hasValue(list: readonly unknown[], value: unknown): boolean {
  let known = texts.get(list);
  if (known === undefined) {
    known = new Set(list.map(canonicalJson));
    texts.set(list, known);
  }
  return known.has(canonicalJson(value));
}

const NONE: Definitions = new Map();
const MAX_DEPTH = 200;
const MAX_COMPARED = 20_000;

/** Whether two values, or two schemas with these definitions, are the same. References are followed. */
export function equalDeep(
  one: unknown,
  other: unknown,
  ones: Definitions = NONE,
  others: Definitions = NONE,
): boolean {
  let left = MAX_COMPARED;
  const equal = (a: unknown, b: unknown, depth: number): boolean => {
    left -= 1;
    if (depth > MAX_DEPTH || left < 0) return false;
    if (Array.isArray(a) && Array.isArray(b))
      return a.length === b.length && a.every((each, n) => equal(each, b[n], depth + 1));
    if (!isObject(a) || !isObject(b)) return a === b;
    const names = Object.keys(a);
    if (names.length !== Object.keys(b).length) return false;
    return names.every((name) => {
      if (!Object.hasOwn(b, name)) return false;
      const isReference = name === '$ref' && ones.size > 0 && others.size > 0;
      return isReference
        ? equal(definitionOf(a, ones), definitionOf(b, others), depth + 1)
        : equal(a[name], b[name], depth + 1);
    });
  };
  return equal(one, other, 0);
}
