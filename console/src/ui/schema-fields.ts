/** The fields that a JSON Schema describes, as rows for reading. */

export interface SchemaField {
  /** `customer.name`, `items[].sku`. Empty: the whole data. */
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
}

type Schema = Readonly<Record<string, unknown>>;
const MAX_DEPTH = 8;

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Lists the fields in the order of the schema, nested ones after their parents. Empty: the schema names no fields. */
export function listSchemaFields(schema: unknown): SchemaField[] {
  return isSchema(schema) ? listFields(schema, '', schema, 0) : [];
}

function listFields(schema: Schema, path: string, root: Schema, depth: number): SchemaField[] {
  if (depth > MAX_DEPTH) return [];
  const { properties, items, required } = resolve(schema, root);
  if (isSchema(items)) return listFields(items, `${path}[]`, root, depth + 1);
  if (!isSchema(properties)) return [];
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(properties).flatMap(([name, value]) => {
    const field = isSchema(value) ? resolve(value, root) : {};
    const fieldPath = path === '' ? name : `${path}.${name}`;
    return [
      {
        path: fieldPath,
        type: describeType(field, root),
        isRequired: needed.includes(name),
        description: typeof field.description === 'string' ? field.description : '',
      },
      ...listFields(field, fieldPath, root, depth + 1),
    ];
  });
}

/** Follows a reference inside the schema, such as `#/$defs/money`. */
function resolve(schema: Schema, root: Schema): Schema {
  const { $ref: reference } = schema;
  if (typeof reference !== 'string' || !reference.startsWith('#/')) return schema;
  const target = reference
    .slice(2)
    .split('/')
    .reduce<unknown>((node, step) => (isSchema(node) ? node[step] : undefined), root);
  return isSchema(target) ? { ...target, ...schema } : schema;
}

function describeType(field: Schema, root: Schema): string {
  if (Array.isArray(field.enum)) return field.enum.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in field) return JSON.stringify(field.const);
  const alternatives = field.anyOf ?? field.oneOf;
  if (Array.isArray(alternatives))
    return alternatives
      .map((each) => (isSchema(each) ? describeType(resolve(each, root), root) : 'any'))
      .join(' | ');
  const name = Array.isArray(field.type) ? field.type.join(' | ') : String(field.type ?? 'any');
  const format = typeof field.format === 'string' ? ` (${field.format})` : '';
  if (name !== 'array' || !isSchema(field.items)) return `${name}${format}`;
  return `array of ${describeType(resolve(field.items, root), root)}`;
}
