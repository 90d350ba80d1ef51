/** Reads and checks the fields of an event. */
import {
  DEFAULT_TENANT,
  isEventType,
  isTenantId,
  MAX_EVENT_TYPE_LENGTH,
  RESERVED_TYPE_PREFIX,
  TENANT_ID_RULE,
} from '../domain/event.ts';
import { findRepeatedHeader, HEADER_NAME, HEADER_VALUE } from '../domain/header-names.ts';
import { idPrefixes, parsePublicId, type Uuid } from '../domain/ids.ts';
import { type FieldError, invalidField, invalidFields, Problem } from '../domain/problem.ts';
import { parseTime, TIME_RULE } from '../domain/time.ts';
import type { Span } from './json-scan.ts';

const MAX_KEY_LENGTH = 255;
const MAX_CHANNELS = 50;
const MAX_HEADERS = 50;
const MAX_TARGETS = 1000;
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
/** NUL and lone surrogates, which PostgreSQL's text type cannot store. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for control characters
const UNSTORABLE = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** Collects the errors of all fields. Absent fields cost nothing: most events have only a type and data. */
export class FieldReader {
  readonly #body: Buffer;
  readonly #fields: Map<string, Span>;
  #errors: FieldError[] | null = null;

  constructor(body: Buffer, fields: Map<string, Span>) {
    this.#body = body;
    this.#fields = fields;
  }

  getValue(name: string): unknown {
    const span = this.#fields.get(name);
    return span === undefined ? undefined : JSON.parse(this.#body.toString('utf8', span.start, span.end));
  }

  /** Returns `fallback` for an invalid value, and records the error for `throwErrors`. */
  readRequired<T>(name: string, read: (value: unknown) => T, fallback: T): T {
    try {
      return read(this.getValue(name));
    } catch (error) {
      this.#addError(name, error);
      return fallback;
    }
  }

  /** Returns `fallback` if the field is absent or null. */
  readOptional<T>(name: string, read: (value: unknown) => T, fallback: T): T {
    if (!this.#fields.has(name)) return fallback;
    return this.readRequired(name, (value) => (value === null ? fallback : read(value)), fallback);
  }

  check(name: string, test: () => void): void {
    try {
      test();
    } catch (error) {
      this.#addError(name, error);
    }
  }

  throwErrors(): void {
    if (this.#errors !== null) throw invalidFields(this.#errors);
  }

  #addError(name: string, error: unknown): void {
    if (!(error instanceof Problem)) throw error;
    this.#errors ??= [];
    this.#errors.push(...(error.errors.length > 0 ? error.errors : [{ path: name, message: error.message }]));
  }
}

export function readType(value: unknown): string {
  if (value === undefined) throw invalidField('type', 'is required');
  if (typeof value !== 'string' || !isEventType(value)) {
    throw invalidField(
      'type',
      `must be dot-separated segments of letters, digits, _ and -, at most ${MAX_EVENT_TYPE_LENGTH} characters, such as "order.created"`,
    );
  }
  if (value.startsWith(RESERVED_TYPE_PREFIX))
    throw invalidField('type', `"${RESERVED_TYPE_PREFIX}" is reserved for Posthorn's own events`);
  return value;
}

/** Throws a `Problem` if the body names another tenant than the API key. */
export function readTenant(value: unknown, keyTenant: string | null): string {
  if (value === undefined || value === null) return keyTenant ?? DEFAULT_TENANT;
  if (typeof value !== 'string' || !isTenantId(value)) {
    throw invalidField('tenant', TENANT_ID_RULE);
  }
  if (keyTenant !== null && value !== keyTenant) {
    throw new Problem('forbidden', `This key belongs to another tenant than "${value}".`, {
      errors: [{ path: 'tenant', message: 'is not the tenant of this key' }],
    });
  }
  return value;
}

export function readIdempotencyKey(value: unknown): string {
  if (typeof value !== 'string') throw invalidField('idempotency_key', 'must be text');
  return value;
}

/**
 * Throws a `Problem` if the key is invalid. It must be printable ASCII, because the signature profile `hex` sends it
 * in a header. `acceptsAnyText`: for an event that its producer has already committed.
 */
export function checkIdempotencyKey(
  key: string | null,
  header: string | null,
  acceptsAnyText: boolean = false,
): void {
  if (header !== null && key !== header) {
    throw invalidField('idempotency_key', 'differs from the Idempotency-Key header');
  }
  if (key === null || key.length === 0 || key.length > MAX_KEY_LENGTH || UNSTORABLE.test(key)) {
    throw invalidField('idempotency_key', `must be 1 to ${MAX_KEY_LENGTH} characters without NUL`);
  }
  if (!acceptsAnyText && !PRINTABLE_ASCII.test(key)) {
    throw invalidField('idempotency_key', `must be 1 to ${MAX_KEY_LENGTH} printable ASCII characters`);
  }
}

export function readSchemaVersion(value: unknown): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > 64 || UNSTORABLE.test(value)) {
    throw invalidField('schema_version', 'must be 1 to 64 characters');
  }
  return value;
}

export function readChannels(value: unknown): readonly string[] {
  const valid =
    Array.isArray(value) &&
    value.length <= MAX_CHANNELS &&
    value.every(
      (item) => typeof item === 'string' && item.length >= 1 && item.length <= 128 && !UNSTORABLE.test(item),
    );
  if (!valid) throw invalidField('channels', `must be at most ${MAX_CHANNELS} texts of 1 to 128 characters`);
  return value as string[];
}

export function readEndpointIds(value: unknown): Uuid[] {
  if (!Array.isArray(value) || value.length > MAX_TARGETS) {
    throw invalidField('endpoint_ids', `must be an array of at most ${MAX_TARGETS} endpoint ids`);
  }
  return value.map((item, index) => {
    const id = typeof item === 'string' ? parsePublicId(idPrefixes.endpoint, item) : null;
    if (id === null) throw invalidField(`endpoint_ids[${index}]`, 'is not an endpoint id (ep_…)');
    return id;
  });
}

/** Returns milliseconds since 1970, or null if there is no value. */
export function readTime(path: string, value: unknown): number | null {
  if (value === undefined || value === null) return null;
  const time = typeof value === 'string' ? parseTime(value) : Number.NaN;
  if (Number.isNaN(time)) throw invalidField(path, TIME_RULE);
  return time;
}

export const readDeliverAt = (value: unknown): number | null => readTime('deliver_at', value);

export function readHeaders(value: unknown): Record<string, string> | null {
  if (typeof value !== 'object' || Array.isArray(value))
    throw invalidField('headers', 'must be an object of texts');
  const headers = value as Record<string, string>;
  return Object.keys(headers).length === 0 ? null : headers;
}

export function checkHeaders(
  headers: Readonly<Record<string, unknown>>,
  isReserved: (name: string) => boolean,
): void {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) throw invalidField('headers', `must have at most ${MAX_HEADERS} entries`);
  for (const [name, content] of entries) {
    const path = `headers.${name}`;
    if (!HEADER_NAME.test(name)) throw invalidField(path, 'is not a valid header name');
    if (isReserved(name)) throw invalidField(path, 'is reserved and cannot be set');
    if (typeof content !== 'string' || !HEADER_VALUE.test(content)) {
      throw invalidField(path, 'must be printable ASCII text of at most 4096 characters');
    }
  }
  const repeated = findRepeatedHeader(Object.keys(headers));
  if (repeated !== null) throw invalidFields([repeated]);
}
