import type { FieldError } from './problem.ts';

/** Returns an error for the first name that repeats another one in different case: HTTP treats them as one header. */
export function repeatedHeader(names: readonly string[]): FieldError | null {
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
