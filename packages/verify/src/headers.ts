import { VerificationError } from './errors.ts';

/** Headers as frameworks give them: a `Headers` object, or Node's object of strings. */
export type HeadersLike =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

const hasGet = (headers: HeadersLike): headers is { get(name: string): string | null } =>
  typeof (headers as { get?: unknown }).get === 'function';

/** `name` in lower case. Null: not there. A header that stands there twice is refused: which one would be meant? */
export function readHeader(headers: HeadersLike, name: string): string | null {
  if (hasGet(headers)) return headers.get(name);
  let found: string | null = null;
  for (const key of Object.keys(headers)) {
    if (key.toLowerCase() !== name) continue;
    const value = headers[key];
    const values = value === undefined ? [] : typeof value === 'string' ? [value] : value;
    for (const one of values) {
      if (found !== null) throw new VerificationError('malformed_header', `${name} stands there twice.`);
      found = one;
    }
  }
  return found;
}

export function requireHeader(headers: HeadersLike, name: string): string {
  const value = readHeader(headers, name);
  if (value === null || value === '') throw new VerificationError('missing_header', `Missing: ${name}.`);
  return value;
}
