/**
 * Turns a Kafka record into the fields of `POST /v1/events`, so that records are validated by the same code as requests.
 *
 * A field that is configured comes from the first of its sources that has a value. The other fields come from the format of
 * the record (formats.ts). `data` keeps the bytes of the producer.
 */
import { isTenantId } from '../domain/event.ts';
import { type FieldSource, parseFieldSource } from '../domain/field-source.ts';
import { parseTime } from '../domain/time.ts';
import { readKnownFormat, UnmappedRecordError } from './formats.ts';
import { JsonValue, parse, type ReadFields } from './json-value.ts';
import { headerOf, type KafkaRecord } from './record.ts';

export { UnmappedRecordError };

/** The sources of each field, as in the settings. An empty list: the field comes from the format of the record. */
export interface MappingConfig {
  readonly type: readonly string[];
  readonly tenant: readonly string[];
  readonly idempotencyKey: readonly string[];
  readonly channels: readonly string[];
  readonly timestamp: readonly string[];
  readonly data: readonly string[];
}

export interface MappedRecord {
  /** As in `POST /v1/events`, without `data`. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Not checked yet: it may be any bytes. */
  readonly data: Buffer;
  /** When the event happened. Null: the record does not say, or not in a usable form. */
  readonly happenedAt: number | null;
  readonly traceparent: string | null;
}

type Sources = { readonly [K in keyof MappingConfig]: readonly FieldSource[] };

const EARLIEST_MS = Date.UTC(2020, 0);
const JSON_NULL = Buffer.from('null');

export class RecordMapping {
  readonly #sources: Sources;
  readonly #readFields: ReadFields;

  constructor(config: MappingConfig, readFields: ReadFields) {
    const compile = (texts: readonly string[]): readonly FieldSource[] =>
      texts.flatMap((text) => parseFieldSource(text) ?? []);
    this.#sources = {
      type: compile(config.type),
      tenant: compile(config.tenant),
      idempotencyKey: compile(config.idempotencyKey),
      channels: compile(config.channels),
      timestamp: compile(config.timestamp),
      data: compile(config.data),
    };
    this.#readFields = readFields;
  }

  /** Throws `UnmappedRecordError` if the record cannot become an event. */
  map(record: KafkaRecord): MappedRecord {
    const value = new JsonValue(record.value ?? JSON_NULL, this.#readFields);
    const known = readKnownFormat(record, value);
    const read = (field: keyof Sources, otherwise: string | null): string | null => {
      const sources = this.#sources[field];
      return sources.length === 0 ? otherwise : firstText(sources, record, value);
    };
    const type = read('type', known.type);
    if (type === null) throw missingField('type', this.#sources.type);
    return {
      fields: {
        type,
        tenant: read('tenant', known.tenant),
        idempotency_key: read('idempotencyKey', known.idempotencyKey),
        channels: readChannels(read('channels', null)),
      },
      data: this.#data(record, value, known.data),
      happenedAt: usableTime(read('timestamp', known.timestamp)),
      traceparent: headerOf(record, 'traceparent'),
    };
  }

  /** Returns the tenant that a record names, also if the record cannot become an event. Null: none that is valid. */
  tenantOf(record: KafkaRecord): string | null {
    const value = new JsonValue(record.value ?? JSON_NULL, this.#readFields);
    try {
      const sources = this.#sources.tenant;
      const tenant =
        sources.length === 0 ? readKnownFormat(record, value).tenant : firstText(sources, record, value);
      return tenant !== null && isTenantId(tenant) ? tenant : null;
    } catch {
      return null;
    }
  }

  #data(record: KafkaRecord, value: JsonValue, otherwise: Buffer | null): Buffer {
    const sources = this.#sources.data;
    if (sources.length === 0) return otherwise ?? JSON_NULL;
    for (const source of sources) {
      const bytes = source.from === 'path' ? value.at(source.names) : toJson(textOf(source, record, value));
      if (bytes !== null) return bytes;
    }
    throw missingField('data', sources);
  }
}

function firstText(sources: readonly FieldSource[], record: KafkaRecord, value: JsonValue): string | null {
  for (const source of sources) {
    const text = textOf(source, record, value);
    if (text !== null && text !== '') return text;
  }
  return null;
}

function textOf(source: FieldSource, record: KafkaRecord, value: JsonValue): string | null {
  switch (source.from) {
    case 'topic':
      return record.topic;
    case 'key':
      return record.key?.toString() ?? null;
    case 'header':
      return headerOf(record, source.name);
    case 'text':
      return source.text;
    case 'path': {
      const bytes = value.at(source.names);
      if (bytes === null) return null;
      const found = parse(bytes);
      if (found === null || found === undefined) return null;
      // The text of a number is that of the producer: a big integer must not be rounded.
      return typeof found === 'string' ? found : bytes.toString();
    }
  }
}

const toJson = (text: string | null): Buffer | null =>
  text === null ? null : Buffer.from(JSON.stringify(text));

/** A JSON array of texts, or texts separated by commas. */
function readChannels(text: string | null): unknown {
  if (text === null) return null;
  if (text.trimStart().startsWith('[')) return parse(Buffer.from(text)) ?? text;
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** A time in RFC 3339, or milliseconds since the epoch. Null: it cannot be the time of an event. */
function usableTime(text: string | null): number | null {
  if (text === null) return null;
  const time = /^\d{1,16}$/.test(text) ? Number(text) : parseTime(text);
  return time >= EARLIEST_MS ? time : null;
}

function missingField(field: keyof Sources, sources: readonly FieldSource[]): UnmappedRecordError {
  const missing = sources.length === 0 ? field : `value at ${sources.map(showSource).join(', ')}`;
  return new UnmappedRecordError(`${field}: the record has no ${missing}`);
}

function showSource(source: FieldSource): string {
  if (source.from === 'path') return ['$', ...source.names].join('.');
  return source.from === 'header' ? `header:${source.name}` : source.from;
}
