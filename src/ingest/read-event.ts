import { isUtf8 } from 'node:buffer';
import {
  DEFAULT_TENANT,
  isEventType,
  isTenantId,
  MAX_EVENT_TYPE_LENGTH,
  type NewEvent,
  RESERVED_TYPE_PREFIX,
  TENANT_ID_RULE,
} from '../domain/event.ts';
import { repeatedHeader } from '../domain/header-names.ts';
import { idPrefixes, parsePublicId, type Uuid } from '../domain/ids.ts';
import { type FieldError, invalidField, invalidFields, Problem } from '../domain/problem.ts';
import { type TraceContext, traceContextOf, withTraceContext } from '../domain/trace-context.ts';
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

export type { NewEvent };

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
  /** Of the request. What the event's own headers say of a trace outranks it. */
  readonly trace?: TraceContext | null;
}

const MAX_KEY_LENGTH = 255;
const MAX_CHANNELS = 50;
const MAX_HEADERS = 50;
const MAX_TARGETS = 1000;
/** More than any event may have: one that is nested too deeply is refused by itself, and not with its batch. */
const BATCH_NESTING = 10_000;
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
      throw invalidField('body', 'must be a JSON object with "type" and "data"');
    }
    const { fields, end } = scanObject(body, start, limits.maxNesting);
    expectEnd(body, end);
    return toEvent(body, fields, limits, context);
  });
}

/** As `readEvent`, of a producer that may have given it an `id`. What the id is worth is for the caller to say. */
export function readEventWithId(
  body: Buffer,
  limits: ReadLimits,
  context: ReadContext,
): { readonly event: NewEvent; readonly id: unknown } {
  return guarded(body, () => {
    const start = skipSpace(body, 0);
    if (!startsObject(body, start)) {
      expectJson(body, start, limits);
      throw invalidField('body', 'must be a JSON object with "type" and "data"');
    }
    const { fields, end } = scanObject(body, start, limits.maxNesting);
    expectEnd(body, end);
    const id = new FieldReader(body, fields).value('id');
    fields.delete('id');
    return { event: toEvent(body, fields, limits, context), id };
  });
}

/** As `readEvent`, of a body that has a type, data, both or neither, and nothing else. Null: it is not there. */
export function readTestEvent(
  body: Buffer,
  limits: ReadLimits,
): { readonly type: string | null; readonly data: Buffer | null } {
  return guarded(body, () => {
    const start = skipSpace(body, 0);
    if (!startsObject(body, start)) {
      expectJson(body, start, limits);
      throw invalidField('body', 'must be a JSON object');
    }
    const { fields, end } = scanObject(body, start, limits.maxNesting);
    expectEnd(body, end);
    const unknown = [...fields.keys()].filter((name) => name !== 'type' && name !== 'data');
    if (unknown.length > 0) throw unknownFields(unknown);
    const textOf = (name: string, otherwise: string) => {
      const span = fields.get(name);
      return span === undefined ? otherwise : body.toString('utf8', span.start, span.end);
    };
    const whole = Buffer.from(`{"type":${textOf('type', '"test"')},"data":${textOf('data', 'null')}}`);
    const context = { keyTenant: null, idempotencyKey: null, isReservedHeader: () => true };
    const { type, data } = readEvent(whole, limits, context);
    return { type: fields.has('type') ? type : null, data: fields.has('data') ? data : null };
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
    const outer = startsObject(body, start) ? scanObject(body, start, BATCH_NESTING) : null;
    if (outer === null) expectJson(body, start, limits);
    else expectEnd(body, outer.end);
    const events = outer?.fields.get('events');
    if (events === undefined || !startsArray(body, events.start)) {
      throw invalidField('events', 'must be an array of events');
    }
    const unknown = [...outer!.fields.keys()].filter((name) => name !== 'events');
    if (unknown.length > 0) throw unknownFields(unknown);
    return scanArray(body, events.start, BATCH_NESTING).items;
  });
  if (items.length === 0) throw invalidField('events', 'must have at least one event');
  if (items.length > maxEvents)
    throw invalidField('events', `must have at most ${maxEvents} events, has ${items.length}`);
  return items.map((item, index) => {
    try {
      if (!startsObject(body, item.start)) throw invalidField('body', 'each event must be a JSON object');
      const { fields } = scanObject(body, item.start, limits.maxNesting);
      const event = toEvent(body, fields, limits, contextOfItem(fields, index, context));
      // A copy: an event that waits for its turn must not keep the whole batch in memory.
      return { ...event, data: Buffer.from(event.data) };
    } catch (error) {
      if (error instanceof Problem) return error;
      if (error instanceof JsonDepthError) return invalidField('data', error.message);
      throw error;
    }
  });
}

/** One header for many events: each gets a key of its own from it, so that the batch can be sent again as a whole. */
function contextOfItem(fields: Map<string, Span>, index: number, context: ReadContext): ReadContext {
  if (context.idempotencyKey === null) return context;
  const idempotencyKey = fields.has('idempotency_key') ? null : `${context.idempotencyKey}#${index}`;
  return { ...context, idempotencyKey };
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
  for (const name of fields.keys()) {
    if (!FIELDS.has(name)) throw unknownFields([...fields.keys()].filter((field) => !FIELDS.has(field)));
  }
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
  const read = new FieldReader(body, fields);
  const event: NewEvent = {
    tenant: readTenant(read.value('tenant'), context.keyTenant),
    type: read.required('type', readType, ''),
    data: body.subarray(data.start, data.end),
    idempotencyKey: read.optional('idempotency_key', readText, context.idempotencyKey),
    schemaVersion: read.optional('schema_version', readSchemaVersion, null),
    channels: read.optional('channels', readChannels, NO_CHANNELS),
    endpointIds: read.optional('endpoint_ids', readEndpointIds, null),
    deliverAt: read.optional('deliver_at', readDeliverAt, null),
    headers: read.optional('headers', readHeaders, null),
  };
  if (event.idempotencyKey !== null || context.idempotencyKey !== null) {
    read.check('idempotency_key', () => checkIdempotencyKey(event.idempotencyKey, context.idempotencyKey));
  }
  if (event.headers !== null)
    read.check('headers', () => checkHeaders(event.headers!, context.isReservedHeader));
  read.throwErrors();
  const { trace } = context;
  if (trace == null || traceContextOf(event.headers) !== null) return event;
  return { ...event, headers: withTraceContext(event.headers, trace) };
}

const NO_CHANNELS: readonly string[] = [];

/** Most events have a type and data and nothing else: what is not there costs nothing. Errors are gathered. */
class FieldReader {
  readonly #body: Buffer;
  readonly #fields: Map<string, Span>;
  #errors: FieldError[] | null = null;

  constructor(body: Buffer, fields: Map<string, Span>) {
    this.#body = body;
    this.#fields = fields;
  }

  value(name: string): unknown {
    const span = this.#fields.get(name);
    return span === undefined ? undefined : JSON.parse(this.#body.toString('utf8', span.start, span.end));
  }

  required<T>(name: string, read: (value: unknown) => T, fallback: T): T {
    try {
      return read(this.value(name));
    } catch (error) {
      this.#note(name, error);
      return fallback;
    }
  }

  /** Absent and null are the same. */
  optional<T>(name: string, read: (value: unknown) => T, fallback: T): T {
    if (!this.#fields.has(name)) return fallback;
    return this.required(name, (value) => (value === null ? fallback : read(value)), fallback);
  }

  check(name: string, test: () => void): void {
    try {
      test();
    } catch (error) {
      this.#note(name, error);
    }
  }

  throwErrors(): void {
    if (this.#errors !== null) throw invalidFields(this.#errors);
  }

  #note(name: string, error: unknown): void {
    if (!(error instanceof Problem)) throw error;
    this.#errors ??= [];
    this.#errors.push(...(error.errors.length > 0 ? error.errors : [{ path: name, message: error.message }]));
  }
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
    throw invalidField('tenant', TENANT_ID_RULE);
  }
  if (keyTenant !== null && value !== keyTenant) {
    throw new Problem('forbidden', `This key belongs to another tenant than "${value}".`, {
      errors: [{ path: 'tenant', message: 'is not the tenant of this key' }],
    });
  }
  return value;
}

function readText(value: unknown): string {
  if (typeof value !== 'string') throw invalidField('idempotency_key', 'must be text');
  return value;
}

function checkIdempotencyKey(key: string | null, header: string | null): void {
  if (header !== null && key !== header) {
    throw invalidField('idempotency_key', 'differs from the Idempotency-Key header');
  }
  if (key === null || key.length === 0 || key.length > MAX_KEY_LENGTH || UNSTORABLE.test(key)) {
    throw invalidField('idempotency_key', `must be 1 to ${MAX_KEY_LENGTH} characters without NUL`);
  }
}

function readSchemaVersion(value: unknown): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > 64 || UNSTORABLE.test(value)) {
    throw invalidField('schema_version', 'must be 1 to 64 characters');
  }
  return value;
}

function readChannels(value: unknown): readonly string[] {
  const valid =
    Array.isArray(value) &&
    value.length <= MAX_CHANNELS &&
    value.every(
      (item) => typeof item === 'string' && item.length >= 1 && item.length <= 128 && !UNSTORABLE.test(item),
    );
  if (!valid) throw invalidField('channels', `must be at most ${MAX_CHANNELS} texts of 1 to 128 characters`);
  return value as string[];
}

function readEndpointIds(value: unknown): Uuid[] {
  if (!Array.isArray(value) || value.length > MAX_TARGETS) {
    throw invalidField('endpoint_ids', `must be an array of at most ${MAX_TARGETS} endpoint ids`);
  }
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

const readDeliverAt = (value: unknown): number | null => readTime('deliver_at', value);

function readHeaders(value: unknown): Record<string, string> | null {
  if (typeof value !== 'object' || Array.isArray(value))
    throw invalidField('headers', 'must be an object of texts');
  const headers = value as Record<string, string>;
  return Object.keys(headers).length === 0 ? null : headers;
}

function checkHeaders(
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
  const repeated = repeatedHeader(Object.keys(headers));
  if (repeated !== null) throw invalidFields([repeated]);
}
