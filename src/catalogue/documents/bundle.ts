/** Makes a schema of a larger document self-contained: what it refers to in the document moves into its `$defs`. */
import { isObject, type Json, type JsonSchema } from '../keywords.ts';

/** Finds what a local reference such as `#/components/schemas/Order` points to. Throws if it points to nothing. */
export function resolvePointer(document: Json, reference: string): unknown {
  if (!reference.startsWith('#/'))
    throw new Error(`${reference}: only references into the document are read`);
  let value: unknown = document;
  for (const part of decodeURIComponent(reference.slice(2)).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
    if (!isThere) throw new Error(`${reference} points to nothing`);
    value = (value as Json)[name];
  }
  return value;
}

/** Follows `{"$ref": …}` of things that are not schemas, such as messages. */
export function follow(document: Json, value: unknown): unknown {
  let found = value;
  for (let n = 0; n < 10 && isObject(found) && typeof found.$ref === 'string'; n += 1)
    found = resolvePointer(document, found.$ref);
  return found;
}

export function bundleSchema(document: Json, schema: unknown): JsonSchema {
  if (!isObject(schema)) return schema === true;
  const names = new Map<string, string>();
  const definitions: Record<string, unknown> = {};
  const nameOf = (reference: string): string => {
    const known = names.get(reference);
    if (known !== undefined) return known;
    const last = reference.split('/').at(-1)!.replaceAll(/\W/g, '_');
    const name = Object.hasOwn(definitions, last) ? `${last}_${names.size}` : last;
    names.set(reference, name);
    definitions[name] = true;
    definitions[name] = copy(resolvePointer(document, reference));
    return name;
  };
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) =>
        name === '$ref' && typeof part === 'string' ? [name, `#/$defs/${nameOf(part)}`] : [name, copy(part)],
      ),
    );
  };
  const bundled = copy(schema) as Json;
  return names.size === 0 ? bundled : { ...bundled, $defs: definitions };
}

/** `1.4.0` becomes `v1.4.0`. */
export function versionOf(document: Json): string {
  const version = isObject(document.info) ? String(document.info.version ?? '') : '';
  return /^\d+(\.\d+){0,2}$/.test(version) ? `v${version}` : version;
}
