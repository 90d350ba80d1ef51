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
  const error = findUnstorable(value);
  if (error !== null) throw invalidField(error.place.replace(/^\./, '') || 'body', error.message);
  return value;
}

/** PostgreSQL cannot store NUL in text, and would change an unpaired surrogate. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

const UNSTORABLE = 'must not contain NUL or an unpaired surrogate';

interface Unstorable {
  /** Relative to the value: `.items[3]`. Built on the way back, because building it for every value takes most of the time. */
  readonly place: string;
  readonly message: string;
}

function findUnstorable(value: unknown): Unstorable | null {
  if (typeof value === 'string') return isStorable(value) ? null : { place: '', message: UNSTORABLE };
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const error = findUnstorable(value[index]);
      if (error !== null) return { ...error, place: `[${index}]${error.place}` };
    }
    return null;
  }
  for (const name of Object.keys(value)) {
    // Assigning it to an object would set the prototype and lose the value.
    if (name === '__proto__') return { place: `.${name}`, message: 'is not allowed as a field name' };
    if (!isStorable(name))
      return { place: '', message: 'has a field name with NUL or an unpaired surrogate' };
    const error = findUnstorable((value as Record<string, unknown>)[name]);
    if (error !== null) return { ...error, place: `.${name}${error.place}` };
  }
  return null;
}
