import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anEndpoint, anEvent } from '../../test/support/attempts.ts';
import { publicId, timeOfId } from '../domain/ids.ts';
import { buildBody, buildMessage } from './envelope.ts';

const endpoint = anEndpoint('https://example.com/');
const PUBLIC_URL = 'https://posthorn.test';

describe('DLV-1 the envelope', () => {
  it('has exactly the documented members, in their order', () => {
    const event = anEvent();
    const id = publicId('evt', event.id);
    const timestamp = new Date(timeOfId(event.id)).toISOString();
    expect(buildBody(endpoint, event, PUBLIC_URL).toString()).toBe(
      `{"id":"${id}","type":"order.created","timestamp":"${timestamp}","data":{"order":1}}`,
    );
  });

  it('has versions and the idempotency key if there are any', () => {
    const event = anEvent({ schemaVersion: '2', idempotencyKey: 'a"b\\c\u2028é' });
    const body = JSON.parse(
      buildBody(anEndpoint('https://example.com/', { apiVersion: '2026-01' }), event, PUBLIC_URL).toString(),
    );
    expect(Object.keys(body)).toEqual([
      'id',
      'type',
      'timestamp',
      'schema_version',
      'api_version',
      'idempotency_key',
      'data',
    ]);
    expect(body).toMatchObject({
      schema_version: '2',
      api_version: '2026-01',
      idempotency_key: 'a"b\\c\u2028é',
    });
  });

  it('has a link instead of the data if the payload is thin', () => {
    const event = anEvent();
    const thin = anEndpoint('https://example.com/', { payload: 'thin' });
    for (const base of [PUBLIC_URL, `${PUBLIC_URL}/`]) {
      const body = JSON.parse(buildBody(thin, event, base).toString());
      expect(body.url).toBe(`https://posthorn.test/v1/events/${publicId('evt', event.id)}`);
      expect(body).not.toHaveProperty('data');
    }
  });
});

describe('ACC-5 the data is the producer’s own text', () => {
  it.each([
    '1.10',
    '12345678901234567890123',
    '{"b":1,"a":2,"a":3}',
    '"\\u00e9\\ud83d\\ude00 é😀"',
    ' { "spaced" : [ 1 , 2 ] } ',
    'null',
  ])('%s', (data) => {
    const body = buildBody(endpoint, anEvent({ data: Buffer.from(data) }), PUBLIC_URL).toString();
    expect(body.endsWith(`,"data":${data}}`)).toBe(true);
    JSON.parse(body);
  });

  it('byte for byte, for any bytes, with and without headroom', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), fc.nat(300), (bytes, headroom) => {
        const event = anEvent({ data: Buffer.from(bytes) });
        const body = buildBody(endpoint, event, PUBLIC_URL);
        expect(body.subarray(body.length - 1 - bytes.length, -1)).toEqual(Buffer.from(bytes));
        const { memory, bodyAt } = buildMessage(
          endpoint,
          event,
          publicId('evt', event.id),
          PUBLIC_URL,
          headroom,
        );
        expect(memory.subarray(bodyAt)).toEqual(body);
      }),
    );
  });
});
