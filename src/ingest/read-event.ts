/** Reads an event or a test event from a request body. Errors are thrown as `Problem`. */
import { isUtf8 } from 'node:buffer';
import type { NewEvent } from '../domain/event.ts';
import { invalidField, Problem } from '../domain/problem.ts';
import { type TraceContext, traceContextOf, withTraceContext } from '../domain/trace-context.ts';
import {
  checkHeaders,
  checkIdempotencyKey,
  FieldReader,
  readChannels,
  readDeliverAt,
  readEndpointIds,
  readHeaders,
  readIdempotencyKey,
  readSchemaVersion,
  readTenant,
  readType,
} from './event-fields.ts';
import {
  expectEnd,
  expectJson,
  JsonDepthError,
  JsonFieldsError,
  JsonSyntaxError,
  type Span,
  scanObject,
  shortName,
  skipSpace,
  startsObject,
} from './json-scan.ts';

export interface ReadLimits {
  readonly maxEventBytes: number;
  readonly maxNesting: number;
}

/** Values from the API key and the headers of the request. The body may repeat them, but must not contradict them. */
export interface ReadContext {
  /** The key's own tenant, or null for an admin key, which may name any. */
  readonly keyTenant: string | null;
  readonly idempotencyKey: string | null;
  readonly isReservedHeader: (name: string) => boolean;
  /** Accepts idempotency keys that are not ASCII: the producer has already committed the event in its own database. */
  readonly acceptsAnyKey?: true;
  /** The trace of the request. A trace in the event's own headers takes precedence. */
  readonly trace?: TraceContext | null;
}

/** Room for what is around `data` in an event: type, key, channels, headers. */
export const ENVELOPE_BYTES = 64 * 1024;

const FIELDS = new Set([
  'type', 'data', 'tenant', 'idempotency_key', 'schema_version', 'channels', 'endpoint_ids', 'deliver_at', 'headers',
]); // biome-ignore format: one line reads better than nine

export function readEvent(body: Buffer, limits: ReadLimits, context: ReadContext): NewEvent {
  return convertSyntaxErrors(body, () => toEvent(body, scanBody(body, limits, EVENT_RULE), limits, context));
}

/** Like `readEvent`, for a producer that may give the event an `id`. The caller must check the id. */
export function readEventWithId(
  body: Buffer,
  limits: ReadLimits,
  context: ReadContext,
): { readonly event: NewEvent; readonly id: unknown } {
  return convertSyntaxErrors(body, () => {
    const fields = scanBody(body, limits, EVENT_RULE);
    const id = new FieldReader(body, fields).getValue('id');
    fields.delete('id');
    return { event: toEvent(body, fields, limits, context), id };
  });
}

/** Reads a body that may only have a type and data. Null: the body lacks this field. */
export function readTestEvent(
  body: Buffer,
  limits: ReadLimits,
): { readonly type: string | null; readonly data: Buffer | null } {
  return convertSyntaxErrors(body, () => {
    const fields = scanBody(body, limits, 'must be a JSON object');
    const unknown = [...fields.keys()].filter((name) => name !== 'type' && name !== 'data');
    if (unknown.length > 0) throw unknownFields(unknown);
    const textOf = (name: string, fallback: string) => {
      const span = fields.get(name);
      return span === undefined ? fallback : body.toString('utf8', span.start, span.end);
    };
    const complete = Buffer.from(`{"type":${textOf('type', '"test"')},"data":${textOf('data', 'null')}}`);
    const context = { keyTenant: null, idempotencyKey: null, isReservedHeader: () => true };
    const { type, data } = readEvent(complete, limits, context);
    return { type: fields.has('type') ? type : null, data: fields.has('data') ? data : null };
  });
}

const EVENT_RULE = 'must be a JSON object with "type" and "data"';

/** Throws a `JsonSyntaxError` if the body is not JSON, and a `Problem` with `rule` if it is not an object. */
function scanBody(body: Buffer, limits: ReadLimits, rule: string): Map<string, Span> {
  const start = skipSpace(body, 0);
  if (!startsObject(body, start)) {
    expectJson(body, limits.maxNesting);
    throw invalidField('body', rule);
  }
  const { fields, end } = scanObject(body, start, limits.maxNesting, MAX_FIELDS);
  expectEnd(body, end);
  return fields;
}

function convertSyntaxErrors<T>(body: Buffer, read: () => T): T {
  expectUtf8(body);
  try {
    return read();
  } catch (error) {
    throw toReadError(error);
  }
}

export function expectUtf8(body: Buffer): void {
  if (!isUtf8(body)) throw new Problem('malformed_json', 'The body is not valid UTF-8.');
}

/** Returns the problem that the scanner's error means. Other errors stay as they are. */
export function toReadError(error: unknown): unknown {
  if (error instanceof JsonSyntaxError)
    return new Problem('malformed_json', `The body is not valid JSON: ${error.message}.`);
  if (error instanceof JsonDepthError) return invalidField('data', error.message);
  if (error instanceof JsonFieldsError) return invalidField('body', error.message);
  return error;
}

/** Far more than any valid request has. */
export const MAX_FIELDS = 100;
const MAX_NAMED_FIELDS = 10;

export function unknownFields(names: readonly string[]): Problem {
  const named = names.slice(0, MAX_NAMED_FIELDS).map(shortName);
  const more = names.length > named.length ? ` and ${names.length - named.length} more` : '';
  return new Problem('invalid', `Unknown field${names.length > 1 ? 's' : ''}: ${named.join(', ')}${more}.`, {
    errors: named.map((path) => ({ path, message: 'is not a field of this request' })),
  });
}

/** One event of a batch may not be larger than an event that is sent alone. */
function refuseLargeItem(fields: Map<string, Span>, { maxEventBytes }: ReadLimits): void {
  let bytes = 0;
  for (const { start, end } of fields.values()) bytes += end - start;
  const limit = maxEventBytes + ENVELOPE_BYTES;
  if (bytes > limit)
    throw new Problem('too_large', `The event has ${bytes} bytes, at most ${limit} are accepted.`, {
      errors: [{ path: 'body', message: `must be at most ${limit} bytes` }],
    });
}

/** Makes an event of the fields of a body. */
export function toEvent(
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
  refuseLargeItem(fields, limits);
  const reader = new FieldReader(body, fields);
  const event: NewEvent = {
    tenant: readTenant(reader.getValue('tenant'), context.keyTenant),
    type: reader.readRequired('type', readType, ''),
    data: body.subarray(data.start, data.end),
    idempotencyKey: reader.readOptional('idempotency_key', readIdempotencyKey, context.idempotencyKey),
    schemaVersion: reader.readOptional('schema_version', readSchemaVersion, null),
    channels: reader.readOptional('channels', readChannels, NO_CHANNELS),
    endpointIds: reader.readOptional('endpoint_ids', readEndpointIds, null),
    deliverAt: reader.readOptional('deliver_at', readDeliverAt, null),
    headers: reader.readOptional('headers', readHeaders, null),
  };
  if (event.idempotencyKey !== null || context.idempotencyKey !== null) {
    reader.check('idempotency_key', () =>
      checkIdempotencyKey(event.idempotencyKey, context.idempotencyKey, context.acceptsAnyKey),
    );
  }
  if (event.headers !== null)
    reader.check('headers', () => checkHeaders(event.headers!, context.isReservedHeader));
  reader.throwErrors();
  const { trace } = context;
  if (trace == null || traceContextOf(event.headers) !== null) return event;
  return { ...event, headers: withTraceContext(event.headers, trace) };
}

const NO_CHANNELS: readonly string[] = [];
