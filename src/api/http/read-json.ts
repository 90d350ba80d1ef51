/** Parses a body. Refuses text that PostgreSQL cannot store unchanged. */
import { isUtf8 } from 'node:buffer';
import { invalidField, Problem } from '../../domain/problem.ts';
import { expectJson, JsonDepthError, JsonSyntaxError } from '../../ingest/index.ts';

export function readJson(body: Buffer, maxNesting: number): unknown {
  if (!isUtf8(body)) throw new Problem('malformed_json', 'The body is not valid UTF-8.');
  try {
    // Before JSON.parse: it reports where the JSON is malformed without repeating its content, and limits the nesting.
    expectJson(body, maxNesting);
  } catch (error) {
    if (error instanceof JsonSyntaxError)
      throw new Problem('malformed_json', `The body is not valid JSON: ${error.message}.`);
    if (error instanceof JsonDepthError) throw invalidField('body', error.message);
    throw error;
  }
  const value: unknown = JSON.parse(body.toString('utf8'));
  // A missing body means the defaults. `null` is more likely a mistake of the client, so it does not.
  if (value === null) throw invalidField('body', 'must be a JSON object, not null');
  const error = findUnstorable(value, '');
  if (error !== null) throw invalidField(error.path || 'body', error.message);
  return value;
}

/** PostgreSQL cannot store NUL in text, and would change an unpaired surrogate. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const UNSTORABLE = 'must not contain NUL or an unpaired surrogate';

function findUnstorable(value: unknown, path: string): { path: string; message: string } | null {
  if (typeof value === 'string') return isStorable(value) ? null : { path, message: UNSTORABLE };
  if (typeof value !== 'object' || value === null) return null;
  for (const [name, entry] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    // Assigning it to an object would set the prototype and lose the value.
    if (name === '__proto__') return { path: at, message: 'is not allowed as a field name' };
    if (!isStorable(name))
      return { path: path || 'body', message: 'has a field name with NUL or an unpaired surrogate' };
    const error = findUnstorable(entry, at);
    if (error !== null) return error;
  }
  return null;
}
