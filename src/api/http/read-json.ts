/** A body that becomes an object: only what can be stored as it stands, and shown again, gets in. */
import { isUtf8 } from 'node:buffer';
import { invalidField, Problem } from '../../domain/problem.ts';
import { expectJson, JsonDepthError, JsonSyntaxError } from '../../ingest/index.ts';

export function readJson(body: Buffer, maxNesting: number): unknown {
  if (!isUtf8(body)) throw new Problem('malformed_json', 'The body is not valid UTF-8.');
  try {
    // Before it is parsed: says where it is malformed, without repeating what it holds, and bounds the recursions to come.
    expectJson(body, maxNesting);
  } catch (error) {
    if (error instanceof JsonSyntaxError)
      throw new Problem('malformed_json', `The body is not valid JSON: ${error.message}.`);
    if (error instanceof JsonDepthError) throw invalidField('body', error.message);
    throw error;
  }
  const value: unknown = JSON.parse(body.toString('utf8'));
  const bad = findUnusable(value, '');
  if (bad !== null) throw invalidField(bad.path || 'body', bad.message);
  return value;
}

/** PostgreSQL stores neither in a text: NUL would fail the request, half a surrogate pair would be changed. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const UNSTORABLE = 'must not contain NUL or half a surrogate pair';

function findUnusable(value: unknown, path: string): { path: string; message: string } | null {
  if (typeof value === 'string') return isStorable(value) ? null : { path, message: UNSTORABLE };
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, entry] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    // Assigned to an object it would set the prototype, and the value would be gone without a word.
    if (name === '__proto__') return { path: at, message: 'is not allowed as a name' };
    if (!isStorable(name))
      return { path: path || 'body', message: 'has a name with NUL or half a surrogate pair' };
    const bad = findUnusable(entry, at);
    if (bad !== null) return bad;
  }
  return null;
}
