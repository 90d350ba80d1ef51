import { describe, expect, it } from 'vitest';
import { anEndpoint, anEvent } from '../../test/support/attempts.ts';
import {
  type AttemptFacts,
  attemptHeaders,
  isCredentialHeader,
  isReservedHeader,
  isSendableHeader,
  REDACT_CREDENTIALS,
  redactHeaders,
  redactionOf,
  staticHeaders,
} from './headers.ts';

const facts = (overrides: Partial<AttemptFacts> = {}): AttemptFacts => ({
  event: anEvent(),
  eventId: 'evt_1',
  deliveryId: 'dlv_1',
  number: 1,
  retryReason: null,
  versionHeaders: null,
  timestampSeconds: 1_789_000_000,
  ...overrides,
});

describe('reserved headers', () => {
  it.each([
    'Host',
    'content-length',
    'Content-Type',
    'Transfer-Encoding',
    'connection',
    'Upgrade',
    'Expect',
    'TE',
    'Webhook-Id',
    'webhook-anything',
    'Posthorn-Attempt',
    'proxy-authorization',
    'user-agent',
    'accept-encoding',
    '__proto__',
  ])('%s', (name) => {
    expect(isReservedHeader(name)).toBe(true);
    expect(isSendableHeader(name, 'x')).toBe(false);
  });

  it.each(['authorization', 'X-Webhook-Token', 'x-api-key', 'traceparent', 'cookie'])(
    '%s is not reserved',
    (name) => {
      expect(isSendableHeader(name, 'x')).toBe(true);
    },
  );

  it('that would break the message cannot be sent', () => {
    for (const value of ['a\r\nb: c', 'a\nb', 'a\0', 'é', '😀'])
      expect(isSendableHeader('x-a', value)).toBe(false);
    for (const name of ['', 'a b', 'a:', 'é', 'a\r\n']) expect(isSendableHeader(name, 'x')).toBe(false);
  });
});

describe('the headers of an attempt', () => {
  it('DLV-8 contain its number and the reason for the retry', () => {
    const first = attemptHeaders(staticHeaders(anEndpoint('https://a.test/'), 'Posthorn/1'), facts());
    expect(first).toEqual({
      'content-type': 'application/json',
      'user-agent': 'Posthorn/1',
      'webhook-id': 'evt_1',
      'webhook-timestamp': '1789000000',
      'posthorn-event-type': 'order.created',
      'posthorn-delivery': 'dlv_1',
      'posthorn-attempt': '1',
    });
    const second = attemptHeaders({}, facts({ number: 2, retryReason: 'http_5xx' }));
    expect(second).toMatchObject({ 'posthorn-attempt': '2', 'posthorn-retry-reason': 'http_5xx' });
  });

  it('DLV-7 contain those of endpoint and event, which never replace Posthorn’s own', () => {
    const endpoint = anEndpoint('https://a.test/', {
      apiVersion: '2026-01',
      headers: {
        'X-Both': 'endpoint',
        'Content-Type': 'text/plain',
        'User-Agent': 'curl',
        'webhook-id': 'forged',
        'x-broken': 'a\r\nb: c',
        HOST: 'evil.test',
      },
    });
    const event = anEvent({
      headers: { 'x-both': 'event', 'x-event': '1', 'posthorn-attempt': '99', 'Content-Length': '3' },
    });
    const headers = attemptHeaders(staticHeaders(endpoint, 'Posthorn/1'), facts({ event }));
    expect(headers).toMatchObject({
      'x-both': 'endpoint',
      'x-event': '1',
      'content-type': 'application/json',
      'user-agent': 'Posthorn/1',
      'webhook-id': 'evt_1',
      'posthorn-attempt': '1',
      'posthorn-api-version': '2026-01',
    });
    for (const name of ['host', 'HOST', 'content-length', 'Content-Length', 'x-broken'])
      expect(headers).not.toHaveProperty(name);
  });

  it('are logged without credentials', () => {
    const headers = { authorization: 'Bearer x', 'x-a': '1' };
    expect(redactHeaders(headers, REDACT_CREDENTIALS)).toEqual({ authorization: '[redacted]', 'x-a': '1' });
    expect(headers.authorization).toBe('Bearer x');
    const plain = { 'x-a': '1' };
    expect(redactHeaders(plain, REDACT_CREDENTIALS)).toBe(plain);
  });

  it('of an endpoint are logged without their values, but for `plainHeaders`', () => {
    const headers = { 'X-Env': 'test', 'x-route': 'a', 'x-session-region': 'eu' };
    const endpoint = { headers, plainHeaders: ['x-env', 'X-Session-Region'], auth: null };
    const sent = { 'x-env': 'test', 'x-route': 'a', 'x-session-region': 'eu', 'x-event': '1' };
    expect(redactHeaders(sent, redactionOf(endpoint))).toEqual({ ...sent, 'x-route': '[redacted]' });
    const auth = { type: 'bearer', token: 'x' } as const;
    const claimed = { headers: { authorization: 'y' }, plainHeaders: ['authorization'], auth };
    expect(redactHeaders({ authorization: 'Bearer x' }, redactionOf(claimed))).toEqual({
      authorization: '[redacted]',
    });
  });
});

describe('which headers are credentials', () => {
  it.each([
    'authorization',
    'cookie',
    'x-api-key',
    'api-key',
    'x-apikey',
    'x-auth-token',
    'x-acme-token',
    'x-gitlab-token',
    'x-shared-secret',
    'client-secret',
    'x-access-key-id',
    'x-amz-security-token',
    'x-session',
    'x-password',
    'ocp-apim-subscription-api-key',
  ])('%s is a credential', (name) => {
    expect(isCredentialHeader(name)).toBe(true);
  });

  it.each([
    'webhook-id',
    'webhook-signature',
    'x-webhook-signature',
    'x-idempotency-key',
    'posthorn-event-type',
    'x-author',
    'x-tokenizer',
    'content-type',
    'traceparent',
  ])('%s is not a credential', (name) => {
    expect(isCredentialHeader(name)).toBe(false);
  });

  it('the cache of names is bounded', () => {
    for (let n = 0; n < 5000; n += 1) expect(isCredentialHeader(`x-${n}`)).toBe(false);
    expect(isCredentialHeader('authorization')).toBe(true);
  });
});
