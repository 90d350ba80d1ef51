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
/** References may multiply the fields of a small schema without end. */
export const MAX_FIELDS = 300;

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The references that are being followed, and the path where each begins. */
type OpenReferences = ReadonlyMap<unknown, string>;

/**
 * Lists the fields in the order of the schema, nested ones after their parents, at most `MAX_FIELDS`. Empty: the schema names
 * no fields.
 */
export function listSchemaFields(schema: unknown): SchemaField[] {
  if (!isSchema(schema)) return [];
  const found: SchemaField[] = [];
  addFields(schema, '', schema, new Map([['#', '']]), found);
  return found;
}

function addFields(
  schema: Schema,
  path: string,
  root: Schema,
  open: OpenReferences,
  found: SchemaField[],
): void {
  if (open.size > MAX_DEPTH || path.split(/[.[]/).length > MAX_DEPTH) return;
  const { $ref: reference } = schema;
  if (open.has(reference)) return;
  const deeper = reference === undefined ? open : new Map(open).set(reference, path);
  const { properties, items, required } = resolve(schema, root);
  if (isSchema(items)) return addFields(items, `${path}[]`, root, deeper, found);
  if (!isSchema(properties)) return;
  const needed = Array.isArray(required) ? required : [];
  for (const [name, value] of Object.entries(properties)) {
    if (found.length >= MAX_FIELDS) return;
    const part = isSchema(value) ? value : {};
    const field = resolve(part, root);
    const fieldPath = path === '' ? name : `${path}.${name}`;
    found.push({
      path: fieldPath,
      type: describeType(field, root) + describeRepetition(part, field, deeper),
      isRequired: needed.includes(name),
      description: typeof field.description === 'string' ? field.description : '',
    });
    addFields(part, fieldPath, root, deeper, found);
  }
}

/** Where the fields of a part are listed already, if the schema refers to itself. */
function describeRepetition(part: Schema, field: Schema, open: OpenReferences): string {
  const path = open.get(part.$ref) ?? (isSchema(field.items) ? open.get(field.items.$ref) : undefined);
  if (path === undefined) return '';
  return path === '' ? ', like the data itself' : `, like ${path}`;
}

/** Follows a reference inside the schema, such as `#/$defs/money`. */
function resolve(schema: Schema, root: Schema): Schema {
  const { $ref: reference } = schema;
  if (reference === '#') return { ...root, ...schema };
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
