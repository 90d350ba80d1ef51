import { expect, test } from 'vitest';
import { clientAddress, trustProxies } from './client-address.ts';

const isTrusted = trustProxies(['10.0.0.0/8', 'fd00::/8', '192.0.2.1/32']);

test.each([
  ['no proxy', '203.0.113.7', undefined, '203.0.113.7'],
  ['one proxy', '10.1.2.3', '203.0.113.7', '203.0.113.7'],
  ['a dual-stack socket', '::ffff:10.1.2.3', '203.0.113.7', '203.0.113.7'],
  ['two proxies', '10.1.2.3', '203.0.113.7, 192.0.2.1', '203.0.113.7'],
  ['IPv6', 'fd00::1', '2001:db8::7', '2001:db8::7'],
  ['a client that forges the header', '10.1.2.3', '127.0.0.1, 203.0.113.7', '203.0.113.7'],
  ['a peer that is not a trusted proxy', '203.0.113.7', '127.0.0.1', '203.0.113.7'],
  ['an invalid address', '10.1.2.3', 'unknown', '10.1.2.3'],
  ['an invalid address before a valid one', '10.1.2.3', `${'x'.repeat(5000)}, 203.0.113.7`, '203.0.113.7'],
  ['an address with a zone', 'fe80::1%eth0', '203.0.113.7', 'fe80::1%eth0'],
  ['a closed connection', '', '203.0.113.7', ''],
  ['an empty header', '10.1.2.3', '', '10.1.2.3'],
])('%s', (_, peer, forwardedFor, address) => {
  expect(clientAddress(peer, forwardedFor, isTrusted)).toBe(address);
});

test('without trusted proxies, X-Forwarded-For is ignored', () => {
  expect(clientAddress('127.0.0.1', '203.0.113.7', trustProxies([]))).toBe('127.0.0.1');
});
