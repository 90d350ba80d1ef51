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
export function dropReadOnly<T extends object>(input: T, shown: object, fields: ReadOnlyFields): T {
  const { rest, errors } = splitReadOnly(input, toJson(shown), fields);
  if (errors.length > 0) throw invalidFields(errors);
  return rest;
}

/** The object as a client gets it. */
export const toJson = (shown: object): Record<string, unknown> => JSON.parse(JSON.stringify(shown));

/** Returns the input without the read-only fields, and an error for each of them that differs from what is shown. */
export function splitReadOnly<T extends object>(
  input: T,
  shown: Readonly<Record<string, unknown>>,
  { asShown, ignored }: ReadOnlyFields,
): { readonly rest: T; readonly errors: FieldError[] } {
  const errors: FieldError[] = [];
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(input)) {
    if (ignored.includes(name)) continue;
    if (!asShown.includes(name)) rest[name] = value;
    else if (name in shown && !isDeepStrictEqual(value, shown[name]))
      errors.push({ path: name, message: 'is read-only: leave it out, or send it as it is' });
  }
  return { rest: rest as T, errors };
}
