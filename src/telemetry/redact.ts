/**
 * Keeps secrets out of the log by the names of their fields, wherever in the object they stand.
 *
 * pino's own redaction wants paths: with these fields on three levels it took 41 µs a line, against 1.5 µs for the
 * line itself. This walk takes about 1 µs, and nothing is copied unless there is something to hide.
 */
const SECRET_FIELDS = new Set(
  [
    'authorization',
    'proxy-authorization',
    'cookie',
    'set-cookie',
    'password',
    'secret',
    'secrets',
    'client_secret',
    'clientSecret',
    'token',
    'key',
    'apiKey',
    'api_key',
    'adminKey',
    'admin_key',
    'encryptionKey',
    'previousEncryptionKeys',
    'databaseUrl',
    'connectionString',
  ].flatMap((field) => [field, field.toLowerCase()]),
);
/** Header names come in any case; nearly all other fields begin in lower case and need no second look. */
const isSecret = (field: string): boolean =>
  SECRET_FIELDS.has(field) || (field.charCodeAt(0) < 97 && SECRET_FIELDS.has(field.toLowerCase()));

export const CENSORED = '****';
const DEEPEST = 6;

export function redact(fields: Record<string, unknown>): Record<string, unknown> {
  return redactObject(fields, 0);
}

function redactObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  let copy: Record<string, unknown> | null = null;
  for (const field in object) {
    const value = object[field];
    const kept = isSecret(field) ? censor(value) : redactValue(value, depth + 1);
    if (kept !== value) {
      copy ??= { ...object };
      copy[field] = kept;
    }
  }
  return copy ?? object;
}

/** That a secret is absent is worth knowing, and gives nothing away. */
function censor(value: unknown): unknown {
  return value === null || value === undefined ? value : CENSORED;
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return value;
  if (Array.isArray(value)) {
    let copy: unknown[] | null = null;
    for (let i = 0; i < value.length; i += 1) {
      const kept = redactValue(value[i], depth + 1);
      if (kept !== value[i]) {
        copy ??= [...value];
        copy[i] = kept;
      }
    }
    return copy ?? value;
  }
  // Errors, buffers, dates and class instances have their own way into the log; a copy would lose it.
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return redactObject(value as Record<string, unknown>, depth);
}
