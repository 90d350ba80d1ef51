/** Reads events from request bodies: one event, a batch, a test event. Errors are thrown as `Problem`. */
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
  readKey,
  readSchemaVersion,
  readTenant,
  readType,
} from './event-fields.ts';
import {
  expectEnd,
  expectJson,
  JsonDepthError,
  JsonSyntaxError,
  type Span,
  scanArray,
  scanObject,
  skipSpace,
  startsArray,
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

/** Deeper than the limit for an event, so that one event that is nested too deeply does not fail its whole batch. */
const BATCH_NESTING = 10_000;

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
    const id = new FieldReader(body, fields).value('id');
    fields.delete('id');
    return { event: toEvent(body, fields, limits, context), id };
  });
}

/** Reads a body that may have a type and data and nothing else. Null: the body does not have it. */
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

/** Returns one entry per item of `{events: […]}`: an invalid item is a `Problem` and does not fail the others. */
export function readBatch(
  body: Buffer,
  limits: ReadLimits,
  context: ReadContext,
  maxEvents: number,
): (NewEvent | Problem)[] {
  const items = convertSyntaxErrors(body, () => scanBatch(body, limits));
  if (items.length === 0) throw invalidField('events', 'must have at least one event');
  if (items.length > maxEvents)
    throw invalidField('events', `must have at most ${maxEvents} events, has ${items.length}`);
  return items.map((item, index) => {
    try {
      if (!startsObject(body, item.start)) throw invalidField('body', 'each event must be a JSON object');
      const { fields } = scanObject(body, item.start, limits.maxNesting);
      const event = toEvent(body, fields, limits, contextOfItem(fields, index, context));
      // Copied, so that a pending event does not keep the whole batch in memory.
      return { ...event, data: Buffer.from(event.data) };
    } catch (error) {
      if (error instanceof Problem) return error;
      if (error instanceof JsonDepthError) return invalidField('data', error.message);
      throw error;
    }
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
  const { fields, end } = scanObject(body, start, limits.maxNesting);
  expectEnd(body, end);
  return fields;
}

function scanBatch(body: Buffer, limits: ReadLimits): Span[] {
  const start = skipSpace(body, 0);
  const outer = startsObject(body, start) ? scanObject(body, start, BATCH_NESTING) : null;
  if (outer === null) expectJson(body, limits.maxNesting);
  else expectEnd(body, outer.end);
  const events = outer?.fields.get('events');
  if (events === undefined || !startsArray(body, events.start)) {
    throw invalidField('events', 'must be an array of events');
  }
  const unknown = [...outer!.fields.keys()].filter((name) => name !== 'events');
  if (unknown.length > 0) throw unknownFields(unknown);
  return scanArray(body, events.start, BATCH_NESTING).items;
}

/** Derives a key for each event from the one header of the batch, so that the whole batch can be sent again. */
function contextOfItem(fields: Map<string, Span>, index: number, context: ReadContext): ReadContext {
  if (context.idempotencyKey === null) return context;
  const idempotencyKey = fields.has('idempotency_key') ? null : `${context.idempotencyKey}#${index}`;
  return { ...context, idempotencyKey };
}

function convertSyntaxErrors<T>(body: Buffer, read: () => T): T {
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
  const reader = new FieldReader(body, fields);
  const event: NewEvent = {
    tenant: readTenant(reader.value('tenant'), context.keyTenant),
    type: reader.required('type', readType, ''),
    data: body.subarray(data.start, data.end),
    idempotencyKey: reader.optional('idempotency_key', readKey, context.idempotencyKey),
    schemaVersion: reader.optional('schema_version', readSchemaVersion, null),
    channels: reader.optional('channels', readChannels, NO_CHANNELS),
    endpointIds: reader.optional('endpoint_ids', readEndpointIds, null),
    deliverAt: reader.optional('deliver_at', readDeliverAt, null),
    headers: reader.optional('headers', readHeaders, null),
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
