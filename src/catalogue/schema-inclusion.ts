/**
 * Decides whether every value that an inner schema allows is allowed by an outer schema. It is sound and not complete: where
 * it cannot decide, it reports a violation.
 *
 * The inner schema is turned into alternatives (`anyOf`, `oneOf`), each a list of plain schemas that all hold. A keyword of
 * the outer schema is satisfied if in every alternative at least one of the plain schemas implies it. Keywords of the inner
 * schema that are not understood only narrow it, so they can be ignored.
 */
import { canonicalJson, compileSchema } from './compile-schema.ts';
import { isObject, type Json, type JsonSchema } from './keywords.ts';
import { definitionOf, type NormalizedSchema } from './normalize-schema.ts';
import {
  alternativesOf,
  type Conjunction,
  declaredTypes,
  equalDeep,
  findValues,
  hasValue,
  typesOf,
  valueListsOf,
} from './schema-parts.ts';

export interface Violation {
  readonly path: string;
  readonly kind: 'removed' | 'type_changed' | 'optional' | 'enum_widened' | 'loosened' | 'undecided';
  /** What the inner schema allows, if it is the new one. */
  readonly message: string;
  /** The same, if the inner schema is the old one. */
  readonly opposite: string;
  /** The path of the object that a removed field belongs to, and its schema. */
  readonly parent?: string;
  readonly schemaText?: string;
}

export interface InclusionOptions {
  readonly inner: NormalizedSchema;
  readonly outer: NormalizedSchema;
  /** True: `additionalProperties: false` and its kin in the outer schema are ignored. */
  readonly isOuterOpen: boolean;
}

const MAX_STEPS = 5_000;
const MAX_DEPTH = 100;
const MAX_VALUES = 200;
const VALUES_PER_STEP = 10;
/** Compiling a schema takes milliseconds. */
const MAX_COMPILATIONS = 20;

export class Inclusion {
  readonly #options: InclusionOptions;
  readonly #violations: Violation[] = [];
  readonly #pairs: { readonly inner: Conjunction; readonly outer: JsonSchema }[] = [];
  #steps = 0;
  #compilations = 0;

  constructor(options: InclusionOptions) {
    this.#options = options;
  }

  find(): readonly Violation[] {
    const { inner, outer } = this.#options;
    this.#compare([inner.root], outer.root, '', 0);
    return this.#violations;
  }

  #report(path: string, kind: Violation['kind'], message: string, opposite: string): void {
    this.#violations.push({ path, kind, message, opposite });
  }

  #reportUndecided(path: string, keyword: string): void {
    this.#report(
      path,
      'undecided',
      `${keyword} was changed, and cannot be compared`,
      `${keyword} was changed`,
    );
  }

  #reportTooLarge(path: string): void {
    this.#reportUndecided(path, 'the schema is too large: it');
  }

  /** True if the comparison finds nothing. Reports nothing. */
  #isIncluded(inner: Conjunction, outer: JsonSchema, path: string, depth: number): boolean {
    const before = this.#violations.length;
    this.#compare(inner, outer, path, depth);
    const isIncluded = this.#violations.length === before;
    this.#violations.length = before;
    return isIncluded;
  }

  #compare(schemas: Conjunction, outer: JsonSchema, path: string, depth: number): void {
    if (outer === true) return;
    // Without repetitions, so that a recursive schema meets the same pair again.
    const inner = [...new Set(schemas)].filter((schema) => schema !== true);
    this.#steps += 1;
    if (this.#steps > MAX_STEPS || depth > MAX_DEPTH) return this.#reportTooLarge(path);
    const alternatives = alternativesOf(inner, this.#options.inner.definitions);
    if (alternatives === null) return this.#reportUndecided(path, 'anyOf');
    if (outer === false) {
      const isEmpty = alternatives.every((parts) => parts.includes(false));
      if (!isEmpty) this.#report(path, 'loosened', 'is allowed now', 'is not allowed any more');
      return;
    }
    if (this.#isBeingCompared(inner, outer)) return;
    this.#pairs.push({ inner, outer });
    for (const parts of alternatives) {
      if (parts.includes(false)) continue;
      this.#comparePlain([...new Set(parts.filter(isObject))], outer, path, depth);
    }
    this.#pairs.pop();
  }

  /** A recursive schema meets the pair again while it is being compared: it then counts as included. */
  #isBeingCompared(inner: Conjunction, outer: JsonSchema): boolean {
    return this.#pairs.some(
      (pair) =>
        pair.outer === outer &&
        pair.inner.length === inner.length &&
        pair.inner.every((part) => inner.includes(part)),
    );
  }

  /** `inner`: plain schemas that all hold. */
  #comparePlain(inner: readonly Json[], outer: Json, path: string, depth: number): void {
    const lists = valueListsOf(inner);
    this.#steps += 1 + Math.ceil((lists.length * (lists[0]?.length ?? 0)) / VALUES_PER_STEP);
    if (this.#steps > MAX_STEPS) return this.#reportTooLarge(path);
    const values = findValues(lists);
    const types = typesOf(inner, values);
    if (types.size === 0 || this.#hasOnlyValuesOf(values, outer)) return;
    const target = definitionOf(outer, this.#options.outer.definitions);
    if (target !== null) this.#compare(inner, target, path, depth + 1);
    for (const part of (outer.allOf as JsonSchema[] | undefined) ?? [])
      this.#compare(inner, part, path, depth + 1);
    this.#compareAlternatives(inner, outer, path, depth);
    this.#compareValues(types, values, outer, path);
    this.#compareNumbers(inner, outer, path, types);
    this.#compareTexts(inner, outer, path, types);
    if (types.has('object')) this.#compareObjects(inner, outer, path, depth);
    if (types.has('array')) this.#compareArrays(inner, outer, path, depth);
    this.#compareOpaque(inner, outer, path, types);
  }

  /** True if the inner schemas allow only these values, and each of them matches the outer schema. Null: there is no list. */
  #hasOnlyValuesOf(values: readonly unknown[] | null, outer: Json): boolean {
    if (values === null || values.length > MAX_VALUES || this.#compilations >= MAX_COMPILATIONS) return false;
    this.#compilations += 1;
    const { definitions } = this.#options.outer;
    const compiled = compileSchema({ root: outer, definitions }, 'value');
    return values.every((value) => compiled.check(value).length === 0);
  }

  #compareAlternatives(inner: readonly Json[], outer: Json, path: string, depth: number): void {
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const options = outer[keyword] as JsonSchema[] | undefined;
      if (options === undefined || this.#hasSame(inner, keyword, options)) continue;
      // Consumers read `oneOf` as a union, too.
      const fits = options.some((option) => this.#isIncluded(inner, option, path, depth + 1));
      if (!fits) this.#reportUndecided(path, keyword);
    }
  }

  /** Compares `type`, `enum` and `const`. The inner schemas allow these types, and only these values if there is a list. */
  #compareValues(
    types: ReadonlySet<string>,
    values: readonly unknown[] | null,
    outer: Json,
    path: string,
  ): void {
    const allowed = declaredTypes(outer);
    const extra = [...types].filter(
      (type) => !allowed.has(type) && !(type === 'integer' && allowed.has('number')),
    );
    if (extra.length > 0)
      this.#report(
        path,
        'type_changed',
        `may be ${extra.join(' or ')} now`,
        `is not ${extra.join(' or ')} any more`,
      );
    const known = findValues(valueListsOf([outer]));
    if (known === null) return;
    if (values === null) {
      this.#report(path, 'enum_widened', 'has no list of values any more', 'has a list of values now');
      return;
    }
    const added = values.filter((value) => !hasValue(known, value));
    if (added.length > 0) {
      const list = added
        .slice(0, 5)
        .map((value) => JSON.stringify(value))
        .join(', ')
        .slice(0, 200);
      this.#report(path, 'enum_widened', `may be ${list} now`, `is not ${list} any more`);
    }
  }

  #compareNumbers(inner: readonly Json[], outer: Json, path: string, types: ReadonlySet<string>): void {
    if (!types.has('number') && !types.has('integer')) return;
    const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = outer;
    const numberOf = (part: Json, keyword: string): number | null =>
      typeof part[keyword] === 'number' ? part[keyword] : null;
    const holds = (implied: (part: Json) => boolean): boolean => inner.some(implied);
    const atLeast = (part: Json, limit: number, isExclusive: boolean): boolean => {
      const [low, above] = [numberOf(part, 'minimum'), numberOf(part, 'exclusiveMinimum')];
      return (
        (low !== null && (isExclusive ? low > limit : low >= limit)) || (above !== null && above >= limit)
      );
    };
    const atMost = (part: Json, limit: number, isExclusive: boolean): boolean => {
      const [high, below] = [numberOf(part, 'maximum'), numberOf(part, 'exclusiveMaximum')];
      return (
        (high !== null && (isExclusive ? high < limit : high <= limit)) || (below !== null && below <= limit)
      );
    };
    const check = (
      keyword: string,
      limit: unknown,
      implied: (part: Json, limit: number) => boolean,
    ): void => {
      if (typeof limit === 'number' && !holds((part) => implied(part, limit)))
        this.#reportLoosened(path, keyword);
    };
    check('minimum', minimum, (part, limit) => atLeast(part, limit, false));
    check('exclusiveMinimum', exclusiveMinimum, (part, limit) => atLeast(part, limit, true));
    check('maximum', maximum, (part, limit) => atMost(part, limit, false));
    check('exclusiveMaximum', exclusiveMaximum, (part, limit) => atMost(part, limit, true));
    check('multipleOf', multipleOf, (part, limit) => {
      const step = numberOf(part, 'multipleOf');
      return (
        step !== null &&
        (step === limit || (Number.isInteger(step) && Number.isInteger(limit) && step % limit === 0))
      );
    });
  }

  #compareTexts(inner: readonly Json[], outer: Json, path: string, types: ReadonlySet<string>): void {
    if (!types.has('string')) return;
    this.#compareSizes(inner, outer, path, 'Length');
    for (const keyword of ['pattern', 'format'])
      if (outer[keyword] !== undefined && !inner.some((part) => part[keyword] === outer[keyword]))
        this.#reportLoosened(path, keyword);
  }

  /** `what`: `Length` for `minLength` and `maxLength`, and so on. */
  #compareSizes(inner: readonly Json[], outer: Json, path: string, what: string): void {
    const [least, most] = [outer[`min${what}`], outer[`max${what}`]];
    if (typeof least === 'number' && least > 0 && !inner.some((part) => Number(part[`min${what}`]) >= least))
      this.#reportLoosened(path, `min${what}`);
    if (typeof most === 'number' && !inner.some((part) => Number(part[`max${what}`]) <= most))
      this.#reportLoosened(path, `max${what}`);
  }

  #reportLoosened(path: string, keyword: string): void {
    this.#report(path, 'loosened', `${keyword} allows more now`, `${keyword} allows less now`);
  }

  #compareObjects(inner: readonly Json[], outer: Json, path: string, depth: number): void {
    this.#compareSizes(inner, outer, path, 'Properties');
    for (const name of (outer.required as string[] | undefined) ?? [])
      if (!inner.some((part) => ((part.required as string[] | undefined) ?? []).includes(name)))
        this.#report(fieldPath(path, name), 'optional', 'is not required any more', 'is required now');
    for (const [name, expected] of entries(outer.properties)) {
      const at = fieldPath(path, name);
      const found = inner.flatMap((part) => {
        const properties = part.properties as Record<string, JsonSchema> | undefined;
        return properties !== undefined && Object.hasOwn(properties, name) ? [properties[name]!] : [];
      });
      if (found.length > 0 && !found.includes(false)) this.#compare(found, expected, at, depth + 1);
      else this.#reportRemoved(path, name, expected);
    }
    this.#compareOtherFields(inner, outer, path, depth);
  }

  #reportRemoved(parent: string, name: string, schema: JsonSchema): void {
    this.#violations.push({
      path: fieldPath(parent, name),
      kind: 'removed',
      message: 'was removed',
      opposite: 'was added',
      parent,
      schemaText: canonicalJson(schema),
    });
  }

  /** A schema for all other fields: `additionalProperties`. */
  #compareOtherFields(inner: readonly Json[], outer: Json, path: string, depth: number): void {
    const rest = outer.additionalProperties as JsonSchema | undefined;
    if (rest === undefined || rest === true) return;
    if (rest === false) {
      const isClosed = inner.some((part) => part.additionalProperties === false);
      if (!this.#options.isOuterOpen && !isClosed)
        this.#report(path, 'loosened', 'allows other fields now', 'allows no other fields any more');
      return;
    }
    if (inner.some((part) => part.patternProperties !== undefined) || outer.patternProperties !== undefined)
      return this.#reportUndecided(path, 'additionalProperties');
    const known = new Set(entries(outer.properties).map(([name]) => name));
    for (const part of inner)
      for (const [name, schema] of entries(part.properties))
        if (!known.has(name)) this.#compare([schema], rest, fieldPath(path, name), depth + 1);
    const others = inner.flatMap(({ additionalProperties }) =>
      additionalProperties === undefined ? [] : [additionalProperties as JsonSchema],
    );
    this.#compare(others.length === 0 ? [true] : others, rest, `${path}.*`.replace(/^\./, ''), depth + 1);
  }

  #compareArrays(inner: readonly Json[], outer: Json, path: string, depth: number): void {
    this.#compareSizes(inner, outer, path, 'Items');
    if (outer.uniqueItems === true && !inner.some(({ uniqueItems }) => uniqueItems === true))
      this.#reportLoosened(path, 'uniqueItems');
    const listOf = (part: Json): JsonSchema[] => (part.prefixItems as JsonSchema[] | undefined) ?? [];
    const itemAt = (part: Json, n: number): JsonSchema => listOf(part)[n] ?? restOf(part);
    const restOf = (part: Json): JsonSchema => (part.items as JsonSchema | undefined) ?? true;
    const length = Math.max(listOf(outer).length, ...inner.map((part) => listOf(part).length));
    for (let n = 0; n < length; n += 1)
      this.#compare(
        inner.map((part) => itemAt(part, n)),
        itemAt(outer, n),
        `${path}[${n}]`,
        depth + 1,
      );
    this.#compare(inner.map(restOf), restOf(outer), `${path}[]`, depth + 1);
  }

  /** Keywords that are only compared as they are written, together with those that they depend on. */
  #compareOpaque(inner: readonly Json[], outer: Json, path: string, types: ReadonlySet<string>): void {
    const groups = [
      ...OPAQUE.any,
      ...(types.has('object') ? OPAQUE.object : []),
      ...(types.has('array') ? OPAQUE.array : []),
    ];
    for (const group of groups) {
      const keyword = group[0]!;
      if (outer[keyword] === undefined || inner.some((part) => this.#hasSameGroup(part, outer, group)))
        continue;
      this.#reportUndecided(path, keyword);
    }
    // What they mean depends on everything beside them.
    for (const keyword of ['unevaluatedProperties', 'unevaluatedItems'])
      if (outer[keyword] !== undefined && !(outer[keyword] === false && this.#options.isOuterOpen))
        this.#reportUndecided(path, keyword);
  }

  #hasSame(inner: readonly Json[], keyword: string, value: unknown): boolean {
    return inner.some((part) => this.#hasSameGroup(part, { [keyword]: value }, [keyword]));
  }

  #hasSameGroup(part: Json, outer: Json, group: readonly string[]): boolean {
    const { inner: one, outer: other } = this.#options;
    return group.every((keyword) =>
      equalDeep(part[keyword], outer[keyword], one.definitions, other.definitions),
    );
  }
}

const OPAQUE = {
  any: [['not'], ['if', 'then', 'else']],
  object: [['patternProperties'], ['propertyNames'], ['dependentRequired'], ['dependentSchemas']],
  array: [['contains', 'minContains', 'maxContains']],
};

const entries = (value: unknown): [string, JsonSchema][] =>
  isObject(value) ? (Object.entries(value) as [string, JsonSchema][]) : [];

/** A name with special characters is quoted. */
function fieldPath(parent: string, name: string): string {
  const shown = /^[\w$-]+$/.test(name) ? name : JSON.stringify(name);
  return parent === '' ? shown : `${parent}.${shown}`;
}
