/** Lets a change repeat the read-only fields of an object as they are shown. */
import { isDeepStrictEqual } from 'node:util';
import { type FieldError, invalidFields } from '../domain/problem.ts';

export interface ReadOnlyFields {
  /** These may be sent with the value that they have. */
  readonly asShown: readonly string[];
  /** These change by themselves, and may be sent with any value. */
  readonly ignored: readonly string[];
}

/**
 * Returns the input without the read-only fields. Throws `invalid` if one of them differs from what is shown. A field that
 * is not shown, because the object does not exist yet, may have any value.
 */
export function dropReadOnly<T extends object>(
  input: T,
  shown: object,
  { asShown, ignored }: ReadOnlyFields,
): T {
  const known = JSON.parse(JSON.stringify(shown)) as Record<string, unknown>;
  const errors: FieldError[] = [];
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(input)) {
    if (ignored.includes(name)) continue;
    if (!asShown.includes(name)) rest[name] = value;
    else if (name in known && !isDeepStrictEqual(value, known[name]))
      errors.push({ path: name, message: 'is read-only: leave it out, or send it as it is' });
  }
  if (errors.length > 0) throw invalidFields(errors);
  return rest as T;
}
