import { describe, expect, it } from 'vitest';
import { readJsonFields } from '../ingest/index.ts';
import { type MappingConfig, RecordMapping } from './mapping.ts';
import type { KafkaRecord } from './record.ts';

const NOTHING: MappingConfig = {
  type: [],
  tenant: [],
  idempotencyKey: [],
  channels: [],
  timestamp: [],
  data: [],
};

interface Given {
  readonly topic?: string;
  readonly key?: string | null;
  readonly value?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

const recordOf = ({ topic = 'orders', key = null, value = '{}', headers = {} }: Given): KafkaRecord => ({
  topic,
  partition: 0,
  offset: 7n,
  timestampMs: 0,
  key: key === null ? null : Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
  headers: Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)] as const),
});

/** The fields that are set, with `data` as text. */
function map(given: Given, config: Partial<MappingConfig> = {}) {
  const mapping = new RecordMapping({ ...NOTHING, ...config }, (json) => readJsonFields(json, 64));
  const { fields, data, happenedAt } = mapping.map(recordOf(given));
  const set = Object.fromEntries(Object.entries(fields).filter(([, content]) => content !== null));
  return { ...set, data: data.toString(), ...(happenedAt !== null && { happenedAt }) };
}

const CLOUD_EVENT =
  '{"specversion":"1.0","id":"1","source":"/shop","type":"order.created","tenant":"acme","time":"2027-01-31T12:00:00Z","data": {"n": 12345678901234567890}}';

describe('SCL-2: a Kafka record without configuration', () => {
  it.each<[string, Given, Record<string, unknown>]>([
    ['plain: the topic is the type', { value: '{"a":1}' }, { type: 'orders', data: '{"a":1}' }],
    ['plain: a record without a value', { value: null }, { type: 'orders', data: 'null' }],
    ['plain: not JSON, which the accept stage rejects', { value: 'hi' }, { type: 'orders', data: 'hi' }],
    [
      'CloudEvents, structured mode: data keeps its bytes',
      { value: CLOUD_EVENT, headers: { 'content-type': 'application/cloudevents+json; charset=UTF-8' } },
      {
        type: 'order.created',
        tenant: 'acme',
        idempotency_key: '/shop#1',
        happenedAt: Date.UTC(2027, 0, 31, 12),
        data: '{"n": 12345678901234567890}',
      },
    ],
    [
      'CloudEvents, structured mode without a content type',
      { value: '{"specversion":"1.0","id":"1","source":"s","type":"a.b"}' },
      { type: 'a.b', idempotency_key: 's#1', data: 'null' },
    ],
    [
      'CloudEvents, structured mode with data_base64',
      {
        value: `{"specversion":"1.0","id":"1","source":"s","type":"a","data_base64":"${Buffer.from('[1]').toString('base64')}"}`,
      },
      { type: 'a', idempotency_key: 's#1', data: '[1]' },
    ],
    [
      'CloudEvents, binary mode',
      {
        value: '{"a":1}',
        headers: {
          ce_specversion: '1.0',
          ce_type: 'order.paid',
          ce_id: '9',
          ce_source: '/s',
          ce_tenant: 'acme',
        },
      },
      { type: 'order.paid', tenant: 'acme', idempotency_key: '/s#9', data: '{"a":1}' },
    ],
    [
      'Debezium outbox router: the payload as it is',
      { topic: 'outbox.event.order', value: '{"a":1}', headers: { id: 'f3' } },
      { type: 'order', idempotency_key: 'f3', data: '{"a":1}' },
    ],
    [
      'Debezium outbox router: a prefix before the topic, eventType as a JSON string',
      {
        topic: 'shop.outbox.event.order',
        value: '{"a":1}',
        headers: { id: '"f3"', eventType: '"order.paid"' },
      },
      { type: 'order.paid', idempotency_key: 'f3', data: '{"a":1}' },
    ],
    [
      'Debezium outbox router: JSON in a JSON string',
      { topic: 'outbox.event.order', value: '"{\\"a\\":1}"', headers: { id: 'f3' } },
      { type: 'order', idempotency_key: 'f3', data: '{"a":1}' },
    ],
    [
      'Debezium outbox router: with its schema',
      { topic: 'outbox.event.order', value: '{"schema":{},"payload":"{\\"a\\":1}"}', headers: { id: 'f3' } },
      { type: 'order', idempotency_key: 'f3', data: '{"a":1}' },
    ],
  ])('%s', (_what, given, expected) => {
    expect(map(given)).toEqual(expected);
  });

  it('hashes the id of a CloudEvent that is too long for an idempotency key', () => {
    const headers = { ce_specversion: '1.0', ce_type: 'a', ce_id: 'x'.repeat(300), ce_source: 's' };
    expect(map({ headers })).toMatchObject({ idempotency_key: expect.stringMatching(/^[0-9a-f]{64}$/) });
  });

  it('ignores a time that cannot be the time of an event', () => {
    const headers = { ce_specversion: '1.0', ce_type: 'a', ce_id: '1', ce_time: '1970-01-01T00:00:00Z' };
    expect(map({ headers })).not.toHaveProperty('happenedAt');
  });

  it('refuses a batch of CloudEvents', () => {
    const headers = { 'content-type': 'application/cloudevents-batch+json' };
    expect(() => map({ value: '[]', headers })).toThrow(/one record per event/);
  });
});

describe('SCL-2: a Kafka record with a mapping', () => {
  const value =
    '{"kind":"a.b","n":12345678901234567890,"who":{"tenant":"acme"},"payload":{"x": 1},"tags":["p","q"]}';
  it.each<[string, Partial<MappingConfig>, Given, Record<string, unknown>]>([
    ['a path', { type: ['$.kind'] }, {}, { type: 'a.b' }],
    ['a nested path', { tenant: ['$.who.tenant'] }, {}, { tenant: 'acme' }],
    [
      'a number keeps its digits',
      { idempotencyKey: ['$.n'] },
      {},
      { idempotency_key: '12345678901234567890' },
    ],
    ['a header', { type: ['header:t'] }, { headers: { t: 'c.d' } }, { type: 'c.d' }],
    ['the key', { idempotencyKey: ['key'] }, { key: 'k1' }, { idempotency_key: 'k1' }],
    ['the topic', { type: ['topic'] }, { topic: 'invoices' }, { type: 'invoices' }],
    ['a constant', { tenant: ['text:acme'] }, {}, { tenant: 'acme' }],
    [
      'the first source that has a value',
      { type: ['header:none', '$.nothing', '$.kind'] },
      {},
      { type: 'a.b' },
    ],
    ['channels in an array', { channels: ['$.tags'] }, {}, { channels: ['p', 'q'] }],
    [
      'channels in a header',
      { channels: ['header:c'] },
      { headers: { c: 'p, q' } },
      { channels: ['p', 'q'] },
    ],
    ['data at a path, with its bytes', { data: ['$.payload'] }, {}, { data: '{"x": 1}' }],
    ['the whole value of a CloudEvent', { data: ['$'] }, { value: CLOUD_EVENT }, { data: CLOUD_EVENT }],
    [
      'milliseconds as time',
      { timestamp: ['header:at'] },
      { headers: { at: '1800000000000' } },
      { happenedAt: 1.8e12 },
    ],
  ])('reads %s', (_what, config, given, expected) => {
    expect(map({ value, ...given }, config)).toMatchObject(expected);
  });

  it.each<[string, Partial<MappingConfig>, RegExp]>([
    [
      'a type',
      { type: ['$.none', 'header:none'] },
      /^type: the record has no value at \$\.none, header:none$/,
    ],
    ['data', { data: ['$.none'] }, /^data: the record has no value at \$\.none$/],
  ])('says what is missing: %s', (_what, config, message) => {
    expect(() => map({ value }, config)).toThrow(message);
  });
});
