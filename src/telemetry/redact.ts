/**
 * Hides secrets in log lines by the names of their fields, at any level of the object.
 *
 * pino's own redaction needs paths: for these fields on three levels it took 41 µs per line. Writing a line takes
 * 1.5 µs. This walk takes about 1 µs, and copies an object only if it hides something.
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
    'redisUrl',
    'connectionString',
  ].flatMap((field) => [field, field.toLowerCase()]),
);
/** Header names may have any case. Nearly all other fields begin in lower case, which saves the second lookup. */
const isSecret = (field: string): boolean =>
  SECRET_FIELDS.has(field) || (field.charCodeAt(0) < 97 && SECRET_FIELDS.has(field.toLowerCase()));

export const CENSORED = '****';
const MAX_DEPTH = 6;

export function redact(fields: Record<string, unknown>): Record<string, unknown> {
  return redactObject(fields, 0);
}

function redactObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  let copy: Record<string, unknown> | null = null;
  for (const field in object) {
    const value = object[field];
    const redacted = isSecret(field) ? censor(value) : redactValue(value, depth + 1);
    if (redacted !== value) {
      copy ??= { ...object };
      copy[field] = redacted;
    }
  }
  return copy ?? object;
}

/** Keeps null and undefined: that a secret is absent is useful to know and harmless. */
function censor(value: unknown): unknown {
  return value === null || value === undefined ? value : CENSORED;
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) {
    let copy: unknown[] | null = null;
    for (let i = 0; i < value.length; i += 1) {
      const redacted = redactValue(value[i], depth + 1);
      if (redacted !== value[i]) {
        copy ??= [...value];
        copy[i] = redacted;
      }
    }
    return copy ?? value;
  }
  // Errors, buffers, dates and class instances have their own serialization, which a copy would lose.
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return redactObject(value as Record<string, unknown>, depth);
}
