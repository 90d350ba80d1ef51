import { expect, test } from 'vitest';
import { packHeaders, parseHeaders, unpackHeaders } from './sent-headers.ts';

const request = {
  deliveryId: '01a1dfa8-65f9-73a0-9ac7-f17a38e50003',
  number: 2,
  startedAt: 1_794_753_717_999,
};
const sent = {
  'x-custom': 'a "quoted" ü',
  'content-type': 'application/json',
  'user-agent': 'Posthorn/0.1.0',
  'webhook-id': 'evt_01m7ftgsfseeg9nhzhf8wea000',
  'webhook-timestamp': '1794753717',
  'posthorn-event-type': 'order.created',
  'posthorn-delivery': 'dlv_01m7ftgsfseeg9nhzhf8wea003',
  'posthorn-attempt': '2',
  'webhook-signature': 'v1,abc',
};

test('headers that can be computed from the attempt are not stored, and are added when it is read', () => {
  const text = packHeaders(sent);
  expect(JSON.parse(text)).toEqual({
    'x-custom': sent['x-custom'],
    '!': 'order.created',
    '~': '0.1.0',
    '^': 'abc',
  });
  expect(unpackHeaders(text, request)).toEqual(sent);
});

test.each([
  { 'user-agent': 'curl/8' },
  { 'webhook-signature': 'v1,abc v1,def' },
  { 'webhook-signature': 'v1a,abc' },
  { '~': 'a header of the endpoint' },
])('headers keep their names if they are unusual: %j', (unusual) => {
  const text = packHeaders({ ...sent, ...unusual });
  expect(JSON.parse(text)).toMatchObject({ 'posthorn-event-type': 'order.created', ...unusual });
  expect(unpackHeaders(text, request)).toEqual({ ...sent, ...unusual });
});

test('headers that an earlier release stored are read as they are', () => {
  const text = '{"user-agent":"Posthorn/0.1.0","webhook-signature":"v1,abc"}';
  expect(parseHeaders(text)).toEqual({ 'user-agent': 'Posthorn/0.1.0', 'webhook-signature': 'v1,abc' });
});

test('a stored header takes precedence over a computed one', () => {
  const other = { ...sent, 'webhook-timestamp': '1794753700' };
  expect(unpackHeaders(JSON.stringify(other), request)).toEqual(other);
});

test('an attempt that sent nothing has no headers', () => {
  expect(unpackHeaders(packHeaders({}), request)).toEqual({});
});
