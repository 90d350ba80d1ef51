/** Formats of records that need no configuration: CloudEvents and the records of Debezium's outbox event router. */
import { createHash } from 'node:crypto';
import { type JsonValue, textIn } from './json-value.ts';
import { headerOf, type KafkaRecord } from './record.ts';

/** What a record says about its event. Null: nothing. */
export interface RecordFields {
  readonly type: string | null;
  readonly tenant: string | null;
  readonly idempotencyKey: string | null;
  readonly timestamp: string | null;
  readonly data: Buffer | null;
}

const STRUCTURED = 'application/cloudevents+json';
const BATCHED = 'application/cloudevents-batch+json';
const DEBEZIUM_TOPIC = /^(?:.*\.)?outbox\.event\.(.+)$/;
const MAX_KEY_LENGTH = 255;

/** Thrown for a record that cannot become an event. The message is shown to the operator. */
export class UnmappedRecordError extends Error {
  override readonly name = 'UnmappedRecordError';
}

/** Reads the fields of a record in a format that it announces itself. A plain record has only data, and its topic as type. */
export function readKnownFormat(record: KafkaRecord, value: JsonValue): RecordFields {
  const contentType = headerOf(record, 'content-type')?.toLowerCase() ?? '';
  if (contentType.startsWith(BATCHED))
    throw new UnmappedRecordError(
      'a batch of CloudEvents in one record is not supported: produce one record per event',
    );
  if (headerOf(record, 'ce_specversion') !== null) return binaryCloudEvent(record);
  if (contentType.startsWith(STRUCTURED) || isCloudEvent(value)) return structuredCloudEvent(value);
  if (isDebezium(record)) return debeziumEvent(record, value);
  return { type: record.topic, tenant: null, idempotencyKey: null, timestamp: null, data: record.value };
}

const REQUIRED_ATTRIBUTES = ['specversion', 'id', 'source', 'type'];

const isCloudEvent = ({ fields }: JsonValue): boolean =>
  fields !== null && REQUIRED_ATTRIBUTES.every((name) => fields.has(name));

function binaryCloudEvent(record: KafkaRecord): RecordFields {
  const attribute = (name: string): string | null => headerOf(record, `ce_${name}`);
  return {
    type: attribute('type'),
    tenant: attribute('tenant'),
    idempotencyKey: keyOf(attribute('source'), attribute('id')),
    timestamp: attribute('time'),
    data: record.value,
  };
}

function structuredCloudEvent(value: JsonValue): RecordFields {
  if (value.fields === null)
    throw new UnmappedRecordError('the value is not a CloudEvent: it is not a JSON object');
  const encoded = value.textOf('data_base64');
  return {
    type: value.textOf('type'),
    tenant: value.textOf('tenant'),
    idempotencyKey: keyOf(value.textOf('source'), value.textOf('id')),
    timestamp: value.textOf('time'),
    data: encoded === null ? (value.fields.get('data') ?? null) : Buffer.from(encoded, 'base64'),
  };
}

/** A CloudEvent is identified by its source and its id together. */
function keyOf(source: string | null, id: string | null): string | null {
  if (id === null) return null;
  const key = source === null ? id : `${source}#${id}`;
  return key.length <= MAX_KEY_LENGTH ? key : createHash('sha256').update(key).digest('hex');
}

const isDebezium = (record: KafkaRecord): boolean =>
  headerOf(record, 'id') !== null &&
  (headerOf(record, 'eventType') !== null || DEBEZIUM_TOPIC.test(record.topic));

function debeziumEvent(record: KafkaRecord, value: JsonValue): RecordFields {
  return {
    type: plainHeader(record, 'eventType') ?? DEBEZIUM_TOPIC.exec(record.topic)?.[1] ?? null,
    tenant: plainHeader(record, 'tenant'),
    idempotencyKey: plainHeader(record, 'id'),
    timestamp: null,
    data: debeziumPayload(record, value),
  };
}

/**
 * The payload column, whichever converter wrote it: as it is, with its schema beside it (`schemas.enable`), or as a JSON
 * string with JSON in it.
 */
function debeziumPayload(record: KafkaRecord, value: JsonValue): Buffer | null {
  const { fields } = value;
  const hasSchema = fields !== null && fields.size === 2 && fields.has('schema') && fields.has('payload');
  const payload = hasSchema ? fields.get('payload')! : record.value;
  if (payload === null) return null;
  const text = textIn(payload)?.trimStart() ?? '';
  return text.startsWith('{') || text.startsWith('[') ? Buffer.from(text) : payload;
}

/** Connect's JsonConverter writes header values as JSON strings. */
function plainHeader(record: KafkaRecord, name: string): string | null {
  const text = headerOf(record, name);
  return text?.startsWith('"') ? (textIn(Buffer.from(text)) ?? text) : text;
}
