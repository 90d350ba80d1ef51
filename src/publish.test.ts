import { describe, expect, it } from 'vitest';
import { toEventJson } from './publish.ts';

const text = (event: Parameters<typeof toEventJson>[0]): string => toEventJson(event).toString();

describe('an event of the library', () => {
  it('has the fields of the API that were given', () => {
    expect(text({ type: 'order.created', data: { a: 1 }, idempotencyKey: 'k', tenant: null })).toBe(
      '{"type":"order.created","idempotency_key":"k","data":{"a":1}}',
    );
  });

  it('keeps JSON that is given as text, byte for byte', () => {
    expect(text({ type: 'a', json: '{ "n": 1.10, "big": 12345678901234567890 }' })).toBe(
      '{"type":"a","data":{ "n": 1.10, "big": 12345678901234567890 }}',
    );
  });

  it('rejects text that would add fields', () => {
    expect(() => text({ type: 'a', json: '1,"tenant":"other"' })).toThrow('json: is not JSON');
  });

  it('leaves out data that JSON cannot express, which the reader then reports as missing', () => {
    expect(text({ type: 'a', data: undefined })).toBe('{"type":"a"}');
  });
});
