import { expect, it } from 'vitest';
import { describeWhere, toWhere } from './payload-query.ts';

it.each([
  ['data.order_id = ord_123', 'data.order_id:ord_123'],
  ['order_id:ord_123', 'data.order_id:ord_123'],
  [' data.at=2027-01-01T10:00 ', 'data.at:2027-01-01T10:00'],
  ['data:hello', 'data:hello'],
  ['ord_123', null],
  ['data.order_id:', null],
])('toWhere turns %s into %s', (text, where) => expect(toWhere(text)).toBe(where));

it('describeWhere reads like a condition', () =>
  expect(describeWhere('data.order_id:ord_123')).toBe('data.order_id = ord_123'));
