import { VerificationError } from './errors.ts';

/** A `Headers` object, or Node's object of strings. */
export type HeadersLike =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

const hasGet = (headers: HeadersLike): headers is { get(name: string): string | null } =>
  typeof (headers as { get?: unknown }).get === 'function';

/** Returns a header by its lower-case name; null if it is missing. Throws `VerificationError` if it appears twice. */
export function readHeader(headers: HeadersLike, name: string): string | null {
  if (hasGet(headers)) return headers.get(name);
  let found: string | null = null;
  for (const key of Object.keys(headers)) {
    if (key.toLowerCase() !== name) continue;
    const value = headers[key];
    const values = value === undefined ? [] : typeof value === 'string' ? [value] : value;
    for (const one of values) {
      if (found !== null) throw new VerificationError('malformed_header', `${name} appears twice.`);
      found = one;
    }
  }
  return found;
}

/** Returns a header. Throws `VerificationError` if it is missing or empty. */
export function requireHeader(headers: HeadersLike, name: string): string {
  const value = readHeader(headers, name);
  if (value === null || value === '') throw new VerificationError('missing_header', `Missing: ${name}.`);
  return value;
}
