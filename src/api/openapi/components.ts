/** The named schemas of the document. Other schemas refer to them. */

import { DOCUMENTED } from '../http/validation.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };

const SCHEMA_MAPS = new Set(['properties', 'patternProperties', '$defs']);
const SCHEMA_LISTS = new Set(['anyOf', 'allOf', 'oneOf', 'prefixItems']);
const SCHEMAS = new Set(['items', 'additionalProperties', 'propertyNames', 'not']);
/** TypeBox's pattern for any property name. */
const ANY_NAME = '^.*$';

export class Components {
  readonly schemas: Record<string, JsonSchema> = {};

  /** The schema to write where it is used: a reference if it has a name. */
  use(schema: JsonSchema): JsonSchema {
    const documented = (schema as { readonly [DOCUMENTED]?: JsonSchema })[DOCUMENTED];
    if (documented !== undefined) return this.use(documented);
    const { title } = schema;
    if (typeof title !== 'string') return this.#copy(schema);
    const { title: _, ...component } = this.#copy(schema);
    const known = this.schemas[title];
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(component))
      throw new Error(`Two different schemas have the title ${title}.`);
    this.schemas[title] = component;
    return { $ref: `#/components/schemas/${title}` };
  }

  #copy(schema: JsonSchema): JsonSchema {
    const copy: Record<string, unknown> = {};
    for (const [keyword, value] of Object.entries(schema)) {
      if (SCHEMA_MAPS.has(keyword))
        copy[keyword] = Object.fromEntries(
          Object.entries(value as Record<string, JsonSchema>).map(([name, part]) => [name, this.use(part)]),
        );
      else if (SCHEMA_LISTS.has(keyword))
        copy[keyword] = (value as JsonSchema[]).map((part) => this.use(part));
      else if (SCHEMAS.has(keyword) && typeof value === 'object')
        copy[keyword] = this.use(value as JsonSchema);
      else copy[keyword] = value;
    }
    return withoutPattern(copy);
  }
}

function withoutPattern(schema: Record<string, unknown>): JsonSchema {
  const patterns = schema.patternProperties as Record<string, JsonSchema> | undefined;
  if (patterns?.[ANY_NAME] === undefined || Object.keys(patterns).length > 1) return schema;
  const { patternProperties: _, ...rest } = schema;
  return { ...rest, additionalProperties: patterns[ANY_NAME] };
}
