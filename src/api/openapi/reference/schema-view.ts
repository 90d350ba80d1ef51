/** Renders JSON schemas for people: types in words, objects as tables. */
import type { JsonSchema } from '../components.ts';
import { type Html, html, inline } from './html.ts';

const REF = '#/components/schemas/';

export const nameOf = ({ $ref }: JsonSchema): string | null =>
  typeof $ref === 'string' && $ref.startsWith(REF) ? $ref.slice(REF.length) : null;

export const schemaAnchor = (name: string): string => `schema-${name}`;

/** `string, 1–128 characters`, `array of Endpoint`, `"full" or "thin"` */
export function typeOf(schema: JsonSchema): Html {
  const name = nameOf(schema);
  if (name !== null) return html`<a href="#${schemaAnchor(name)}">${name}</a>`;
  if (Array.isArray(schema.anyOf)) return joinTypes((schema.anyOf as JsonSchema[]).map(typeOf));
  // A problem with certain codes: its name is enough.
  if (Array.isArray(schema.allOf)) return typeOf(schema.allOf[0] as JsonSchema);
  if (Array.isArray(schema.enum)) return joinTypes(schema.enum.map(literal));
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.type === 'array') {
    const items = (schema.items ?? {}) as JsonSchema;
    return html`array of ${typeOf(items)}${range(schema.minItems, schema.maxItems, 'entries')}`;
  }
  if (schema.type === 'object') return objectType(schema);
  if (schema.type === undefined) return html`any JSON value`;
  if (schema.format === 'date-time') return html`time`;
  return html`${String(schema.type)}${range(schema.minLength, schema.maxLength, 'characters')}${bounds(schema)}`;
}

function objectType({ additionalProperties, properties }: JsonSchema): Html {
  if (properties !== undefined || typeof additionalProperties !== 'object') return html`object`;
  return html`object of ${typeOf(additionalProperties as JsonSchema)}`;
}

const literal = (value: unknown): Html => html`<code>${JSON.stringify(value)}</code>`;
const joinTypes = (types: readonly Html[]): Html =>
  html`${types.map((type, index) => html`${index > 0 ? ' or ' : ''}${type}`)}`;

function range(from: unknown, to: unknown, unit: string): string {
  if (from === undefined && to === undefined) return '';
  if (to === undefined) return `, at least ${from} ${unit}`;
  return from === undefined ? `, at most ${amount(to)} ${unit}` : `, ${amount(from)}–${amount(to)} ${unit}`;
}

function bounds({ minimum, exclusiveMinimum, maximum }: JsonSchema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${amount(minimum)}–${amount(maximum)}`;
  const parts = [
    ...(minimum === undefined ? [] : [`at least ${amount(minimum)}`]),
    ...(exclusiveMinimum === undefined ? [] : [`more than ${amount(exclusiveMinimum)}`]),
    ...(maximum === undefined ? [] : [`at most ${amount(maximum)}`]),
  ];
  return parts.map((part) => `, ${part}`).join('');
}

const amount = (value: unknown): string => Number(value).toLocaleString('en');

export interface Row {
  readonly name: string;
  readonly required: boolean;
  readonly schema: JsonSchema;
  readonly description?: string;
}

/** The fields of an object, one row each. Nested objects are indented below. */
export function fieldTable(rows: readonly Row[]): Html {
  // Most fields are of one kind, so only the others are marked.
  const mark = rows.filter(({ required }) => required).length > rows.length / 2 ? 'optional' : 'required';
  return html`<div class="wide"><table>
    <thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Meaning</th></tr></thead>
    <tbody>${rows.map((row) => fieldRows(row, '', mark))}</tbody>
  </table></div>`;
}

function fieldRows(row: Row, prefix: string, mark: 'required' | 'optional'): Html {
  const { schema } = row;
  const described = row.description ?? descriptionOf(schema);
  const fallback = schema.default === undefined ? '' : ` Default ${JSON.stringify(schema.default)}.`;
  return html`<tr>
    <th scope="row"><code>${prefix && html`<span class="outer">${prefix}</span>`}${row.name}</code>${row.required === (mark === 'required') && html` <span class="${mark}">${mark}</span>`}</th>
    <td>${typeOf(schema)}</td><td>${inline(described + fallback)}</td>
  </tr>${rowsOf(innerObject(schema)).map((inner) => fieldRows(inner, `${prefix}${row.name}.`, mark))}`;
}

/** The description of a union is that of its first part that has one. */
function descriptionOf(schema: JsonSchema): string {
  if (typeof schema.description === 'string') return schema.description;
  const parts = [...((schema.anyOf as JsonSchema[] | undefined) ?? []), (schema.items ?? {}) as JsonSchema];
  return parts.map((part) => part.description).find((text) => typeof text === 'string') ?? '';
}

function innerObject(schema: JsonSchema): JsonSchema {
  if (schema.properties !== undefined) return schema;
  if (schema.type === 'array') return innerObject((schema.items ?? {}) as JsonSchema);
  const objects = ((schema.anyOf as JsonSchema[] | undefined) ?? []).filter((part) => part.properties);
  return objects[0] ?? {};
}

export function rowsOf({ properties, required }: JsonSchema): Row[] {
  const names = new Set(required as string[] | undefined);
  return Object.entries((properties ?? {}) as Record<string, JsonSchema>).map(([name, schema]) => ({
    name,
    required: names.has(name),
    schema,
  }));
}
