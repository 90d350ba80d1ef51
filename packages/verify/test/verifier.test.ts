import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equalInConstantTime, fromBase64, fromHex } from '../src/bytes.ts';
import {
  createVerifier,
  type HeadersLike,
  type RawBody,
  VerificationError,
  type VerificationReason,
  type VerifierOptions,
  verificationReasons,
} from '../src/index.ts';
import { PUBLIC_KEY, SECRET } from './testing/signing.ts';

const NOW = 1_700_000_000;
const BODY = '{"id":"evt_1","type":"a.b","data":1}';

function standard(body = BODY, { id = 'evt_1', at = NOW as number | string } = {}) {
  const key = Buffer.from(SECRET.slice(6), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` };
}
function stripe(at: number | string = NOW) {
  const signature = createHmac('sha256', SECRET).update(`${at}.${BODY}`).digest('hex');
  return { 'stripe-signature': `t=${at},v1=${signature}` };
}
const hex = (body = BODY) => `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;

const verify = (headers: HeadersLike, options: Partial<VerifierOptions> = {}, body: RawBody = BODY) =>
  createVerifier({ secret: SECRET, now: () => NOW * 1000, ...options }).verify(body, headers);

const right = standard();
const cases: [string, VerificationReason, HeadersLike, Partial<VerifierOptions>?, RawBody?][] = [
  ['no headers at all', 'missing_header', {}],
  ['no id', 'missing_header', { ...right, 'webhook-id': undefined }],
  ['no time', 'missing_header', { ...right, 'webhook-timestamp': undefined }],
  ['no signature', 'missing_header', { ...right, 'webhook-signature': undefined }],
  ['an empty signature', 'missing_header', { ...right, 'webhook-signature': '' }],
  ['two ids', 'malformed_header', { ...right, 'Webhook-Id': 'evt_2' }],
  ['an id as a list of two', 'malformed_header', { ...right, 'webhook-id': ['evt_1', 'evt_2'] }],
  ['a time that is none', 'malformed_header', { ...right, 'webhook-timestamp': 'now' }],
  ['a time with a fraction', 'malformed_header', { ...right, 'webhook-timestamp': `${NOW}.5` }],
  ['a negative time', 'malformed_header', { ...right, 'webhook-timestamp': `-${NOW}` }],
  ['a time in exponents', 'malformed_header', { ...right, 'webhook-timestamp': '17e8' }],
  ['an endless time', 'malformed_header', { ...right, 'webhook-timestamp': '9'.repeat(40) }],
  ['only a version to come', 'unsupported_signature', { ...right, 'webhook-signature': 'v9,AAAA' }],
  ['only v1a, with a shared secret', 'unsupported_signature', { ...right, 'webhook-signature': 'v1a,AAAA' }],
  ['only v1, with a public key', 'unsupported_signature', right, { secret: PUBLIC_KEY }],
  ['a signature that is no base64', 'unsupported_signature', { ...right, 'webhook-signature': 'v1,!!!' }],
  ['a signature without its version', 'unsupported_signature', { ...right, 'webhook-signature': 'AAAA' }],
  ['a signature of nothing', 'unsupported_signature', { ...right, 'webhook-signature': 'v1,' }],
  ['a short signature', 'signature_mismatch', { ...right, 'webhook-signature': 'v1,AAAA' }],
  [
    'a cut signature',
    'signature_mismatch',
    { ...right, 'webhook-signature': right['webhook-signature'].slice(0, -6) },
  ],
  ['another id', 'signature_mismatch', { ...right, 'webhook-id': 'evt_2' }],
  ['another time', 'signature_mismatch', { ...right, 'webhook-timestamp': String(NOW + 1) }],
  [
    'a dot moved from id to time',
    'malformed_header',
    { ...right, 'webhook-id': 'evt', 'webhook-timestamp': `_1.${NOW}` },
  ],
  ['another body', 'signature_mismatch', right, {}, '{}'],
  ['another secret', 'signature_mismatch', right, { secret: 'whsec_AAAA' }],
  [
    'the literal secret for the decoded one',
    'signature_mismatch',
    { 'x-webhook-signature': hex() },
    { profile: 'hex', secret: SECRET.slice(6) },
  ],
  ['301 seconds ago', 'timestamp_too_old', standard(BODY, { at: NOW - 301 })],
  ['301 seconds ahead', 'timestamp_too_new', standard(BODY, { at: NOW + 301 })],
  [
    '11 seconds ago, if 10 are allowed',
    'timestamp_too_old',
    standard(BODY, { at: NOW - 11 }),
    { toleranceSeconds: 10 },
  ],
  ['stripe, 301 seconds ago', 'timestamp_too_old', stripe(NOW - 301), { profile: 'stripe' }],
  ['stripe without a time', 'malformed_header', { 'stripe-signature': 'v1=aa' }, { profile: 'stripe' }],
  [
    'stripe with two times',
    'malformed_header',
    { 'stripe-signature': `t=1,${stripe()['stripe-signature']}` },
    { profile: 'stripe' },
  ],
  [
    'stripe with v0 only',
    'unsupported_signature',
    { 'stripe-signature': `t=${NOW},v0=aa` },
    { profile: 'stripe' },
  ],
  [
    'stripe with another time',
    'signature_mismatch',
    { 'stripe-signature': stripe()['stripe-signature'].replace(String(NOW), String(NOW + 1)) },
    { profile: 'stripe' },
  ],
  [
    'hex without its prefix',
    'unsupported_signature',
    { 'x-webhook-signature': hex().slice(7) },
    { profile: 'hex' },
  ],
  [
    'hex of odd length',
    'unsupported_signature',
    { 'x-webhook-signature': hex().slice(0, -1) },
    { profile: 'hex' },
  ],
  [
    'hex in the next header only',
    'missing_header',
    { 'x-webhook-signature-next': hex() },
    { profile: 'hex' },
  ],
  [
    'github with sha1',
    'unsupported_signature',
    { 'x-hub-signature-256': 'sha1=aabb' },
    { profile: 'github' },
  ],
  ['a parsed body', 'body_already_parsed', right, {}, JSON.parse(BODY)],
  ['no body', 'body_already_parsed', right, {}, undefined as never],
  ['a body that is no JSON', 'malformed_body', standard('nonsense'), {}, 'nonsense'],
];

describe('why a request is refused', () => {
  it.each(cases)('%s: %s', async (_what, reason, headers, options, ...body) => {
    const refused = await createVerifier({ secret: SECRET, now: () => NOW * 1000, ...options })
      .verify(body.length > 0 ? body[0]! : BODY, headers)
      .catch((error) => error);
    expect(refused).toBeInstanceOf(VerificationError);
    expect(refused.reason).toBe(reason);
    expect(refused.message).toContain(verificationReasons[reason]);
    expect(refused.message).not.toContain(SECRET.slice(6));
  });

  it('every reason is in the table above, or belongs to an adapter', () => {
    const seen = new Set<string>([...cases.map(([, reason]) => reason), 'body_too_large']);
    expect([...seen].toSorted()).toEqual(Object.keys(verificationReasons).toSorted());
  });

  it('a forger who guesses wrong is not told about the time', async () => {
    await expect(verify({ ...right, 'webhook-timestamp': '1' })).rejects.toMatchObject({
      reason: 'signature_mismatch',
    });
  });
});

describe('what is accepted', () => {
  it('300 seconds either way', async () => {
    for (const at of [NOW - 300, NOW + 300]) await verify(standard(BODY, { at }));
  });

  it('headers of any kind, in any case', async () => {
    await verify(new Headers(right));
    await verify({
      'WEBHOOK-ID': 'evt_1',
      'Webhook-Timestamp': [String(NOW)],
      'webhook-signature': right['webhook-signature'],
    });
  });

  it('bodies of any kind', async () => {
    const bytes = new TextEncoder().encode(BODY);
    for (const body of [BODY, bytes, bytes.buffer, Buffer.from(BODY)]) await verify(right, {}, body);
  });

  it('the right signature among wrong, unknown and malformed ones', async () => {
    const signature = `v1,AAAA v9,x  v1a,AAAA nonsense ${right['webhook-signature']}`;
    await verify({ ...right, 'webhook-signature': signature });
  });

  it('a secret without its prefix', async () => {
    await verify(right, { secret: SECRET.slice(6) });
  });

  it('hex in capitals, and a next header that is nonsense', async () => {
    const headers = {
      'x-webhook-signature': `sha256=${hex().slice(7).toUpperCase()}`,
      'x-webhook-signature-next': '?',
    };
    await verify(headers, { profile: 'hex' });
  });

  it('the id of the body, not of a header that nobody signed', async () => {
    const headers = {
      'x-webhook-signature': hex(),
      'x-webhook-id': 'evt_forged',
      'webhook-id': 'evt_forged',
    };
    expect((await verify(headers, { profile: 'hex' })).id).toBe('evt_1');
  });

  it('a header longer than anybody sends is not a way to make it slow', async () => {
    const signature = `${'v1,AAAA '.repeat(50_000)}`.trim();
    const begin = performance.now();
    await expect(verify({ ...right, 'webhook-signature': signature })).rejects.toMatchObject({
      reason: 'signature_mismatch',
    });
    expect(performance.now() - begin).toBeLessThan(1000);
  });
});

describe('a verifier that cannot work is a TypeError at once', () => {
  it.each([
    ['no secret', { secret: [] }],
    ['an empty secret', { secret: '' }],
    ['a secret that is no base64', { secret: 'whsec_!' }],
    ['a public key of the wrong length', { secret: 'whpk_AAAA' }],
    ['a private key', { secret: 'whsk_AAAA' }],
    ['an undefined secret', { secret: undefined as never }],
    ['an unknown profile', { secret: 'x', profile: 'paypal' as never }],
    ['no tolerance', { secret: SECRET, toleranceSeconds: 0 }],
    ['an empty secret of another profile', { secret: '', profile: 'hex' as const }],
  ])('%s', (_what, options) => {
    expect(() => createVerifier(options)).toThrow(TypeError);
  });
});

describe('encodings', () => {
  it('base64 and hex come back as they were', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), (bytes) => {
        const buffer = Buffer.from(bytes);
        expect(Buffer.from(fromBase64(buffer.toString('base64'))!)).toEqual(buffer);
        expect(Buffer.from(fromBase64(buffer.toString('base64').replaceAll('=', ''))!)).toEqual(buffer);
        expect(Buffer.from(fromHex(buffer.toString('hex'))!)).toEqual(buffer);
      }),
    );
  });

  it('what is none is null, and never throws', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const bytes of [fromBase64(text), fromHex(text)])
          expect(bytes === null || bytes.length > 0).toBe(true);
      }),
    );
    expect([fromBase64('A'), fromBase64('AA=A'), fromHex('0'), fromHex('0g')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });

  it('the comparison is right', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        expect(equalInConstantTime(a, b)).toBe(Buffer.from(a).equals(Buffer.from(b)));
        expect(equalInConstantTime(a, Uint8Array.from(a))).toBe(true);
      }),
    );
  });
});
