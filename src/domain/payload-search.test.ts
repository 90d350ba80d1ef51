import { describe, expect, it } from 'vitest';
import { parsePayloadSearch } from './payload-search.ts';

/** Does what a search does: looks for the needles, then compares. */
function finds(where: string, json: string): boolean {
  const parsed = parsePayloadSearch(where);
  if (!parsed.ok) throw new Error(parsed.message);
  const data = Buffer.from(json);
  const isCandidate = parsed.search.needles.every((group) => group.some((needle) => data.includes(needle)));
  return isCandidate && parsed.search.matches(data);
}

describe('parsePayloadSearch', () => {
  it.each([
    ['data.order_id:ord_123', '{"order_id": "ord_123"}'],
    ['data.order_id: ord_123 ', '{"order_id": "ord_123"}'],
    ['data.order.id:7', '{"order":{"id":7}}'],
    ['data.order.id:7', '{"order":{"id":"7"}}'],
    ['data.items.sku:b', '{"items":[{"sku":"a"},{"sku":"b"}]}'],
    ['data.items.1.sku:b', '{"items":[{"sku":"a"},{"sku":"b"}]}'],
    ['data.tags:new', '{"tags":["old","new"]}'],
    ['data.paid:true', '{"paid":true}'],
    ['data.coupon:null', '{"coupon":null}'],
    ['data.at:2027-01-01T10:00', '{"at":"2027-01-01T10:00"}'],
    ['data.name:Zoë', '{"name":"Zo\\u00eb"}'],
    ['data.name:Zoë', '{"name":"Zo\\u00EB"}'],
    ['data.name:Zoë', '{"name":"Zoë"}'],
    ['data.url:a/b', '{"url":"a\\/b"}'],
    ['data.n:"7"', '{"n":"7"}'],
    ['data.big:12345678901234567890', '{"big":12345678901234567890}'],
    ['data:hello', '"hello"'],
  ])('%s finds %s', (where, json) => expect(finds(where, json)).toBe(true));

  it.each([
    ['data.order_id:ord_123', '{"order_id":"ord_1234"}'],
    ['data.order_id:ord_123', '{"other":"ord_123","order_id":"x"}'],
    ['data.n:"7"', '{"n":7}'],
    ['data.order:7', '{"order":{"id":7}}'],
    ['data.big:12345678901234567890', '{"big":12345678901234567891}'],
  ])('%s does not find %s', (where, json) => expect(finds(where, json)).toBe(false));

  it.each([
    'order_id',
    'order_id:1',
    'type:a',
    'data.a:',
    'data..b:1',
    'data.a:"x',
    `data.a:${'x'.repeat(257)}`,
  ])('refuses %s', (where) => expect(parsePayloadSearch(where).ok).toBe(false));
});
