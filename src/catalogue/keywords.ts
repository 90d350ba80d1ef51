/** The keywords of JSON Schema that Posthorn understands. Others are annotations. */

export type Json = Readonly<Record<string, unknown>>;
export type JsonSchema = Json | boolean;

/** Keywords whose value is one schema for the same value. */
export const IN_PLACE = ['not', 'if', 'then', 'else'] as const;
/** Keywords whose value is a list of schemas for the same value. */
export const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
/** Keywords whose value is one schema for parts of the value. */
export const CHILD = [
  'items',
  'contains',
  'additionalProperties',
  'propertyNames',
  'unevaluatedProperties',
  'unevaluatedItems',
] as const;
/** Keywords whose value is a map of schemas for parts of the value. */
export const CHILD_MAPS = ['properties', 'patternProperties'] as const;

/** Keywords that compare the value itself. Their order decides which of several errors is reported. */
export const ASSERTIONS = [
  'type',
  'const',
  'enum',
  'required',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
  'pattern',
  'format',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minContains',
  'maxContains',
  'minProperties',
  'maxProperties',
  'dependentRequired',
] as const;

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
