import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { anEndpoint, TEST_SECRET } from '../../test/support/attempts.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { HMAC_HEADROOM, hmac, hmacKey } from './hmac.ts';
import { createSigner, SIGNING_HEADROOM } from './sign.ts';

const NOW = 1_614_265_330_000;
const OTHER_SECRET = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';

function sign(
  settings: Partial<Endpoint>,
  body: string | Buffer,
  { id = 'evt_1', timestamp = NOW / 1000, nowMs = NOW } = {},
): Record<string, string> {
  const bytes = Buffer.from(body);
  const memory = Buffer.concat([Buffer.alloc(SIGNING_HEADROOM, '!'), bytes]);
  const headers: Record<string, string> = {};
  createSigner(anEndpoint('https://example.com/', settings))(
    { eventId: id, timestampSeconds: timestamp, message: { memory, bodyAt: SIGNING_HEADROOM }, nowMs },
    headers,
  );
  expect(memory.subarray(SIGNING_HEADROOM)).toEqual(bytes);
  return headers;
}

const secrets = (...list: string[]): Pick<Endpoint, 'secrets'> => ({
  secrets: list.map((secret) => ({ secret, expiresAt: null })),
});

interface Vector {
  scheme: 'v1' | 'v1a' | 'github';
  secret?: string;
  private_key?: string;
  id?: string;
  timestamp?: number;
  body: string;
  signature: string;
}
const { vectors } = JSON.parse(
  readFileSync(new URL('../../test/vectors/standard-webhooks.json', import.meta.url), 'utf8'),
) as { vectors: Vector[] };

describe('SIG-1, SIG-2 known signatures', () => {
  it.each(vectors)('$scheme $id', (vector) => {
    const profile = { v1: 'standard', v1a: 'standard-ed25519', github: 'github' } as const;
    const headers = sign(
      { signature: profile[vector.scheme], ...secrets(vector.secret ?? vector.private_key!) },
      vector.body,
      { id: vector.id ?? '', timestamp: vector.timestamp ?? 0 },
    );
    expect(headers[vector.scheme === 'github' ? 'x-hub-signature-256' : 'webhook-signature']).toBe(
      vector.signature,
    );
  });
});

describe('SIG-1 the official library', () => {
  it('verifies, for any body', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
        const body = JSON.stringify({ text });
        const timestamp = Math.floor(Date.now() / 1000);
        const headers = {
          ...sign({}, body, { timestamp }),
          'webhook-id': 'evt_1',
          'webhook-timestamp': String(timestamp),
        };
        expect(new Webhook(TEST_SECRET).verify(body, headers)).toEqual({ text });
      }),
      { numRuns: 50 },
    );
  });

  it('SIG-4 verifies with the old and with the new secret while both are active', () => {
    const timestamp = Math.floor(Date.now() / 1000);
    const signed = sign(secrets(TEST_SECRET, OTHER_SECRET), '{}', { timestamp });
    const headers = { ...signed, 'webhook-id': 'evt_1', 'webhook-timestamp': String(timestamp) };
    expect(signed['webhook-signature']?.split(' ')).toHaveLength(2);
    for (const secret of [TEST_SECRET, OTHER_SECRET]) new Webhook(secret).verify('{}', headers);
  });
});

describe('SIG-4 rotation', () => {
  const rotated = (expiresAt: number): Pick<Endpoint, 'secrets'> => ({
    secrets: [
      { secret: TEST_SECRET, expiresAt: null },
      { secret: OTHER_SECRET, expiresAt },
    ],
  });

  it('an expired secret does not sign any more', () => {
    expect(sign(rotated(NOW + 1), '{}')['webhook-signature']?.split(' ')).toHaveLength(2);
    expect(sign(rotated(NOW), '{}')['webhook-signature']).toBe(sign({}, '{}')['webhook-signature']);
  });

  it('profiles with one signature keep the old one, and send the new one in another header', () => {
    const during = sign({ signature: 'hex', ...rotated(NOW + 1) }, '{}');
    const hex = (secret: string): string =>
      `sha256=${createHmac('sha256', secret).update('{}').digest('hex')}`;
    expect(during).toEqual({
      'x-webhook-signature': hex(OTHER_SECRET),
      'x-webhook-signature-next': hex(TEST_SECRET),
    });
    expect(sign({ signature: 'hex', ...rotated(NOW) }, '{}')).toEqual({
      'x-webhook-signature': hex(TEST_SECRET),
    });
  });

  it('signing throws without an active secret, so nothing is sent unsigned', () => {
    expect(() => sign({ secrets: [{ secret: TEST_SECRET, expiresAt: NOW - 1 }] }, '{}')).toThrow();
    expect(() => sign({ secrets: [] }, '{}')).toThrow();
  });
});

describe('SIG-2 profiles', () => {
  it('stripe signs timestamp and body with the literal secret', () => {
    const expected = createHmac('sha256', TEST_SECRET).update('1614265330.{"a":1}').digest('hex');
    expect(sign({ signature: 'stripe' }, '{"a":1}')).toEqual({
      'stripe-signature': `t=1614265330,v1=${expected}`,
    });
  });

  it('stripe has one signature per active secret', () => {
    const value = sign({ signature: 'stripe', ...secrets(TEST_SECRET, OTHER_SECRET) }, '{}')[
      'stripe-signature'
    ];
    expect(value).toMatch(/^t=\d+,v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/);
  });

  it('header and prefix can be changed', () => {
    const custom = { profile: 'hex', header: 'X-Acme-Signature', prefix: '' } as const;
    const expected = createHmac('sha256', TEST_SECRET).update('{}').digest('hex');
    expect(sign({ signature: custom }, '{}')).toEqual({ 'x-acme-signature': expected });
    const own = { profile: 'hex', header: null, prefix: null } as const;
    expect(sign({ signature: own }, '{}')).toEqual({ 'x-webhook-signature': `sha256=${expected}` });
  });

  it.each([
    ['standard', 'whsec_'],
    ['standard-ed25519', 'whsk_'],
    ['standard-ed25519', 'whsk_dG9vIHNob3J0'],
  ] as const)('%s rejects an invalid secret: %s', (signature, secret) => {
    expect(() => sign({ signature, ...secrets(secret) }, '{}')).toThrow();
  });
});

it('our HMAC equals that of node:crypto for any key and text', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 200 }),
      fc.uint8Array({ maxLength: 500 }),
      (key, text) => {
        const memory = Buffer.concat([Buffer.alloc(HMAC_HEADROOM), text]);
        for (const encoding of ['hex', 'base64'] as const)
          expect(hmac(hmacKey(Buffer.from(key)), memory, HMAC_HEADROOM, encoding)).toBe(
            createHmac('sha256', key).update(text).digest(encoding),
          );
      },
    ),
  );
});
