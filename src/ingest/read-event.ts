import { isUtf8 } from 'node:buffer';
import {
  DEFAULT_TENANT,
  isEventType,
  isTenantId,
  MAX_EVENT_TYPE_LENGTH,
  RESERVED_TYPE_PREFIX,
} from '../domain/event.ts';
import { idPrefixes, parsePublicId, type Uuid } from '../domain/ids.ts';
import { type FieldError, invalidField, Problem } from '../domain/problem.ts';
import {
  expectEnd,
  JsonDepthError,
  JsonSyntaxError,
  type Span,
  scanArray,
  scanObject,
  skipSpace,
  skipValue,
  startsArray,
  startsObject,
} from './json-scan.ts';

/** What a producer asked for, checked: the input of the accept stage. */
export interface NewEvent {
  readonly tenant: string;
  readonly type: string;
  readonly data: Buffer;
  readonly idempotencyKey: string | null;
  readonly schemaVersion: string | null;
  readonly channels: readonly string[];
  readonly endpointIds: readonly Uuid[] | null;
  readonly deliverAt: number | null;
  readonly headers: Readonly<Record<string, string>> | null;
}

export interface ReadLimits {
  readonly maxEventBytes: number;
  readonly maxNesting: number;
}

/** What the caller's key and headers say; the body may say it too, and must not disagree. */
export interface ReadContext {
  /** The key's own tenant, or null for an admin key, which may name any. */
  readonly keyTenant: string | null;
  readonly idempotencyKey: string | null;
  readonly isReservedHeader: (name: string) => boolean;
}

const MAX_KEY_LENGTH = 255;
const MAX_CHANNELS = 50;
const MAX_HEADERS = 50;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e]{0,4096}$/;
/** NUL and lone surrogates: PostgreSQL's text takes neither. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it looks for
const UNSTORABLE = /\u0000|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

const FIELDS = new Set([
  'type', 'data', 'tenant', 'idempotency_key', 'schema_version', 'channels', 'endpoint_ids', 'deliver_at', 'headers',
]); // biome-ignore format: one line reads better than nine

export function readEvent(body: Buffer, limits: ReadLimits, context: ReadContext): NewEvent {
  return guarded(body, () => {
    const start = skipSpace(body, 0);
    if (!startsObject(body, start)) {
      expectJson(body, start, limits);
      throw new Problem('invalid', 'The body must be a JSON object with "type" and "data".');
    }
    const { fields, end } = scanObject(body, start, limits.maxNesting);
    expectEnd(body, end);
    return toEvent(body, fields, limits, context);
  });
}

/** One entry per item of `{events: […]}`: a bad one is a problem of its own and does not sink the others. */
export function readBatch(
  body: Buffer,
  limits: ReadLimits,
  context: ReadContext,
  maxEvents: number,
): (NewEvent | Problem)[] {
  const items = guarded(body, () => {
    const start = skipSpace(body, 0);
    // +2: the batch's own object and array are not the events' nesting.
    const outer = startsObject(body, start) ? scanObject(body, start, limits.maxNesting + 2) : null;
    if (outer === null) expectJson(body, start, limits);
    else expectEnd(body, outer.end);
    const events = outer?.fields.get('events');
    if (events === undefined || !startsArray(body, events.start)) {
      throw invalidField('events', 'must be an array of events');
    }
    const unknown = [...outer!.fields.keys()].filter((name) => name !== 'events');
    if (unknown.length > 0) throw unknownFields(unknown);
    return scanArray(body, events.start, limits.maxNesting + 1).items;
  });
  if (items.length === 0) throw invalidField('events', 'must have at least one event');
  if (items.length > maxEvents)
    throw invalidField('events', `must have at most ${maxEvents} events, has ${items.length}`);
  return items.map((item) => {
    try {
      if (!startsObject(body, item.start)) throw new Problem('invalid', 'Each event must be a JSON object.');
      const { fields } = scanObject(body, item.start, limits.maxNesting);
      return toEvent(body, fields, limits, context);
    } catch (error) {
      if (error instanceof Problem) return error;
      if (error instanceof JsonDepthError) return invalidField('data', error.message);
      throw error;
    }
  });
}

/** What is not even JSON is malformed, and not merely something else than was expected. */
function expectJson(body: Buffer, start: number, limits: ReadLimits): void {
  expectEnd(body, skipValue(body, start, limits.maxNesting));
}

function guarded<T>(body: Buffer, read: () => T): T {
  if (!isUtf8(body)) throw new Problem('malformed_json', 'The body is not valid UTF-8.');
  try {
    return read();
  } catch (error) {
    if (error instanceof JsonSyntaxError) {
      throw new Problem('malformed_json', `The body is not valid JSON: ${error.message}.`);
    }
    if (error instanceof JsonDepthError) throw invalidField('data', error.message);
    throw error;
  }
}

function unknownFields(names: readonly string[]): Problem {
  return new Problem('invalid', `Unknown field${names.length > 1 ? 's' : ''}: ${names.join(', ')}.`, {
    errors: names.map((path) => ({ path, message: 'is not a field of this request' })),
  });
}

function toEvent(
  body: Buffer,
  fields: Map<string, Span>,
  limits: ReadLimits,
  context: ReadContext,
): NewEvent {
  const unknown = [...fields.keys()].filter((name) => !FIELDS.has(name));
  if (unknown.length > 0) throw unknownFields(unknown);
  const data = fields.get('data');
  if (data === undefined) throw invalidField('data', 'is required (any JSON value)');
  if (data.end - data.start > limits.maxEventBytes) {
    throw new Problem(
      'too_large',
      `data: has ${data.end - data.start} bytes, at most ${limits.maxEventBytes} are accepted.`,
      {
        errors: [{ path: 'data', message: `must have at most ${limits.maxEventBytes} bytes` }],
      },
    );
  }
  const errors: FieldError[] = [];
  const value = (name: string): unknown => {
    const span = fields.get(name);
    return span === undefined
      ? undefined
      : (JSON.parse(body.toString('utf8', span.start, span.end)) as unknown);
  };
  const check = <T>(path: string, read: () => T, fallback: T): T => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      errors.push(...(error.errors.length > 0 ? error.errors : [{ path, message: error.message }]));
      return fallback;
    }
  };
  const tenant = readTenant(value('tenant'), context.keyTenant);
  const event: NewEvent = {
    tenant,
    type: check('type', () => readType(value('type')), ''),
    data: body.subarray(data.start, data.end),
    idempotencyKey: check(
      'idempotency_key',
      () => readIdempotencyKey(value('idempotency_key'), context.idempotencyKey),
      null,
    ),
    schemaVersion: check(
      'schema_version',
      () => readOptionalText('schema_version', value('schema_version'), 64),
      null,
    ),
    channels: check('channels', () => readChannels(value('channels')), []),
    endpointIds: check('endpoint_ids', () => readEndpointIds(value('endpoint_ids')), null),
    deliverAt: check('deliver_at', () => readTime('deliver_at', value('deliver_at')), null),
    headers: check('headers', () => readHeaders(value('headers'), context.isReservedHeader), null),
  };
  if (errors.length > 0)
    throw new Problem('invalid', errors.map((e) => `${e.path}: ${e.message}`).join('; '), { errors });
  return event;
}

function readType(value: unknown): string {
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

export function readTenant(value: unknown, keyTenant: string | null): string {
  if (value === undefined || value === null) return keyTenant ?? DEFAULT_TENANT;
  if (typeof value !== 'string' || !isTenantId(value)) {
    throw invalidField(
      'tenant',
      'must be 1 to 128 letters, digits, or any of . _ : - and start with a letter or digit',
    );
  }
  if (keyTenant !== null && value !== keyTenant) {
    throw new Problem('forbidden', `This key belongs to another tenant than "${value}".`);
  }
  return value;
}

function readIdempotencyKey(value: unknown, header: string | null): string | null {
  if (value !== undefined && value !== null && typeof value !== 'string')
    throw invalidField('idempotency_key', 'must be text');
  const key = value ?? header;
  if (key === null || key === undefined) return null;
  if (typeof value === 'string' && header !== null && header !== value) {
    throw invalidField('idempotency_key', 'differs from the Idempotency-Key header');
  }
  if (key.length === 0 || key.length > MAX_KEY_LENGTH || UNSTORABLE.test(key)) {
    throw invalidField('idempotency_key', `must be 1 to ${MAX_KEY_LENGTH} characters without NUL`);
  }
  return key;
}

function readOptionalText(path: string, value: unknown, max: number): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'string' || value.length === 0 || value.length > max || UNSTORABLE.test(value)) {
    throw invalidField(path, `must be 1 to ${max} characters`);
  }
  return value;
}

function readChannels(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const valid =
    Array.isArray(value) &&
    value.length <= MAX_CHANNELS &&
    value.every(
      (item) => typeof item === 'string' && item.length >= 1 && item.length <= 128 && !UNSTORABLE.test(item),
    );
  if (!valid) throw invalidField('channels', `must be at most ${MAX_CHANNELS} texts of 1 to 128 characters`);
  return value as string[];
}

function readEndpointIds(value: unknown): Uuid[] | null {
  if (value === undefined || value === null) return null;
  if (!Array.isArray(value)) throw invalidField('endpoint_ids', 'must be an array of endpoint ids');
  return value.map((item, index) => {
    const id = typeof item === 'string' ? parsePublicId(idPrefixes.endpoint, item) : null;
    if (id === null) throw invalidField(`endpoint_ids[${index}]`, 'is not an endpoint id (ep_…)');
    return id;
  });
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

export function readTime(path: string, value: unknown): number | null {
  if (value === undefined || value === null) return null;
  const time = typeof value === 'string' && RFC3339.test(value) ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(time)) throw invalidField(path, 'must be an RFC 3339 time such as "2027-01-31T12:00:00Z"');
  return time;
}

function readHeaders(value: unknown, isReserved: (name: string) => boolean): Record<string, string> | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value))
    throw invalidField('headers', 'must be an object of texts');
  const entries = Object.entries(value as Record<string, unknown>);
  if (entries.length > MAX_HEADERS) throw invalidField('headers', `must have at most ${MAX_HEADERS} entries`);
  for (const [name, content] of entries) {
    const path = `headers.${name}`;
    if (!HEADER_NAME.test(name)) throw invalidField(path, 'is not a valid header name');
    if (isReserved(name)) throw invalidField(path, 'is reserved and cannot be set');
    if (typeof content !== 'string' || !HEADER_VALUE.test(content)) {
      throw invalidField(path, 'must be printable ASCII text of at most 4096 characters');
    }
  }
  return entries.length === 0 ? null : (Object.fromEntries(entries) as Record<string, string>);
}
