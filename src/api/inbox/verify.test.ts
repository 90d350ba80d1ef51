import { describe, expect, it } from 'vitest';
import { signMessage } from '../../deliver/index.ts';
import { type Endpoint, type SignatureProfile, signatureProfiles } from '../../domain/endpoint.ts';
import { resolveEndpoint } from '../../domain/endpoint-config.ts';
import { generateSecret } from '../../manage/signing-secrets.ts';
import { verifySignature } from './verify.ts';

const NOW = 1_800_000_000_000;
const PUBLIC_URL = 'http://127.0.0.1:8787';
const body = Buffer.from('{"id":"evt_1"}');

function endpointWith(profile: SignatureProfile, ...secrets: string[]): Endpoint {
  const record = {
    id: '0199d4c2-6f3a-7b15-9e42-5a0c81d70000',
    tenant: 'acme',
    url: `${PUBLIC_URL}/inbox/a`,
    config: { signature: profile },
    enabled: true,
    disabledReason: null,
    paused: false,
    deleted: false,
  };
  return resolveEndpoint(
    record,
    secrets.map((secret) => ({ secret, expiresAt: null })),
  );
}

const signed = (endpoint: Endpoint) => ({
  'webhook-id': 'evt_1',
  'webhook-timestamp': '1800000000',
  ...signMessage(endpoint, { eventId: 'evt_1', timestampSeconds: 1_800_000_000, body, nowMs: NOW }),
});
const verdict = (endpoints: Endpoint[], headers: Record<string, string>, bytes = body) =>
  verifySignature(endpoints, { headers, body: bytes, publicUrl: PUBLIC_URL, nowMs: NOW }).verdict;

describe.each(signatureProfiles)('a request signed as %s', (profile) => {
  const [old, current] = [generateSecret(profile), generateSecret(profile)];
  const endpoint = endpointWith(profile, current);

  it('is valid only with the secret of its endpoint', () => {
    expect(verdict([endpoint], signed(endpoint))).toBe('valid');
    expect(verdict([endpointWith(profile, old)], signed(endpoint))).toBe('invalid');
    expect(verdict([endpointWith(profile, old), endpoint], signed(endpoint))).toBe('valid');
  });

  it('is valid before, during and after a rotation', () => {
    const both = endpointWith(profile, current, old);
    expect(verdict([both], signed(both))).toBe('valid');
    if (profile === 'hex' || profile === 'github') return;
    expect(verdict([endpoint], signed(both))).toBe('valid');
    expect(verdict([both], signed(endpoint))).toBe('valid');
  });

  it('is invalid with another body, without a signature, or with an empty one', () => {
    const headers = signed(endpoint);
    expect(verdict([endpoint], headers, Buffer.from('{"id":"evt_2"}'))).toBe('invalid');
    expect(verdict([endpoint], { 'webhook-id': 'evt_1', 'webhook-timestamp': '1800000000' })).toBe('invalid');
    const emptied = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, /id|timestamp/.test(name) ? value : '']),
    );
    expect(verdict([endpoint], emptied)).toBe('invalid');
  });
});

it('the verdict is unknown without an endpoint', () => {
  expect(verdict([], {})).toBe('unknown');
});

describe('an inbox that many endpoints have as their address', () => {
  const own = endpointWith('standard', generateSecret('standard'));
  const others = Array.from({ length: 500 }, () => endpointWith('standard', generateSecret('standard')));
  const headers = signed(own);

  it('checks at most ten of them, because anyone can send large bodies to it', () => {
    expect(verdict([...others.slice(0, 9), own], headers)).toBe('valid');
    expect(verdict([...others, own], headers)).toBe('unknown');
  });

  it('checks first those whose URL names this server', () => {
    const elsewhere = others.map((endpoint) => ({ ...endpoint, url: 'https://example.com/inbox/a' }));
    expect(verdict([...elsewhere, own], headers)).toBe('valid');
  });
});
