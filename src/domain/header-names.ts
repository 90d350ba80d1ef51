import type { FieldError } from './problem.ts';

/** The names that endpoints and events may give, apart from reserved ones. */
export const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
/** Printable ASCII, spaces and tabs. Other characters have no agreed encoding in headers. */
export const HEADER_VALUE = /^[\t\x20-\x7e]{0,4096}$/;

/** Returns an error for the first name that repeats another one in different case: HTTP treats them as one header. */
export function findRepeatedHeader(names: readonly string[]): FieldError | null {
  const seen = new Map<string, string>();
  for (const name of names) {
    const lower = name.toLowerCase();
    const before = seen.get(lower);
    if (before !== undefined)
      return {
        path: `headers.${name}`,
        message: `is the same header as "${before}", which differs only in case: give one of them`,
      };
    seen.set(lower, name);
  }
  return null;
}
