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

const validHeaders = standard();
const cases: [string, VerificationReason, HeadersLike, Partial<VerifierOptions>?, RawBody?][] = [
  ['no headers at all', 'missing_header', {}],
  ['no id', 'missing_header', { ...validHeaders, 'webhook-id': undefined }],
  ['no time', 'missing_header', { ...validHeaders, 'webhook-timestamp': undefined }],
  ['no signature', 'missing_header', { ...validHeaders, 'webhook-signature': undefined }],
  ['an empty signature', 'missing_header', { ...validHeaders, 'webhook-signature': '' }],
  ['two ids', 'malformed_header', { ...validHeaders, 'Webhook-Id': 'evt_2' }],
  ['an id as a list of two', 'malformed_header', { ...validHeaders, 'webhook-id': ['evt_1', 'evt_2'] }],
  ['a timestamp that is not a number', 'malformed_header', { ...validHeaders, 'webhook-timestamp': 'now' }],
  ['a time with a fraction', 'malformed_header', { ...validHeaders, 'webhook-timestamp': `${NOW}.5` }],
  ['a negative time', 'malformed_header', { ...validHeaders, 'webhook-timestamp': `-${NOW}` }],
  ['a time in exponents', 'malformed_header', { ...validHeaders, 'webhook-timestamp': '17e8' }],
  [
    'a timestamp with 40 digits',
    'malformed_header',
    { ...validHeaders, 'webhook-timestamp': '9'.repeat(40) },
  ],
  ['only an unknown version', 'unsupported_signature', { ...validHeaders, 'webhook-signature': 'v9,AAAA' }],
  [
    'only v1a, with a shared secret',
    'unsupported_signature',
    { ...validHeaders, 'webhook-signature': 'v1a,AAAA' },
  ],
  ['only v1, with a public key', 'unsupported_signature', validHeaders, { secret: PUBLIC_KEY }],
  [
    'a signature that is not base64',
    'unsupported_signature',
    { ...validHeaders, 'webhook-signature': 'v1,!!!' },
  ],
  [
    'a signature without its version',
    'unsupported_signature',
    { ...validHeaders, 'webhook-signature': 'AAAA' },
  ],
  ['an empty v1 signature', 'unsupported_signature', { ...validHeaders, 'webhook-signature': 'v1,' }],
  ['a short signature', 'signature_mismatch', { ...validHeaders, 'webhook-signature': 'v1,AAAA' }],
  [
    'a truncated signature',
    'signature_mismatch',
    { ...validHeaders, 'webhook-signature': validHeaders['webhook-signature'].slice(0, -6) },
  ],
  ['another id', 'signature_mismatch', { ...validHeaders, 'webhook-id': 'evt_2' }],
  ['another time', 'signature_mismatch', { ...validHeaders, 'webhook-timestamp': String(NOW + 1) }],
  [
    'a dot moved from id to time',
    'malformed_header',
    { ...validHeaders, 'webhook-id': 'evt', 'webhook-timestamp': `_1.${NOW}` },
  ],
  ['another body', 'signature_mismatch', validHeaders, {}, '{}'],
  ['another secret', 'signature_mismatch', validHeaders, { secret: 'whsec_AAAA' }],
  [
    'the secret without its prefix',
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
  ['a parsed body', 'body_already_parsed', validHeaders, {}, JSON.parse(BODY)],
  ['no body', 'body_already_parsed', validHeaders, {}, undefined as never],
  ['a body that is not JSON', 'malformed_body', standard('nonsense'), {}, 'nonsense'],
];

describe('rejected requests', () => {
  it.each(cases)('%s: %s', async (_what, reason, headers, options, ...body) => {
    const error = await createVerifier({ secret: SECRET, now: () => NOW * 1000, ...options })
      .verify(body.length > 0 ? body[0]! : BODY, headers)
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(VerificationError);
    expect(error.reason).toBe(reason);
    expect(error.message).toContain(verificationReasons[reason]);
    expect(error.message).not.toContain(SECRET.slice(6));
  });

  it('the table covers every reason except that of the adapters', () => {
    const seen = new Set<string>([...cases.map(([, reason]) => reason), 'body_too_large']);
    expect([...seen].toSorted()).toEqual(Object.keys(verificationReasons).toSorted());
  });

  it('an invalid signature is reported before an old timestamp', async () => {
    await expect(verify({ ...validHeaders, 'webhook-timestamp': '1' })).rejects.toMatchObject({
      reason: 'signature_mismatch',
    });
  });
});

describe('accepted requests', () => {
  it('a timestamp 300 seconds in the past or future', async () => {
    for (const at of [NOW - 300, NOW + 300]) await verify(standard(BODY, { at }));
  });

  it('headers as Headers object or record, in any case', async () => {
    await verify(new Headers(validHeaders));
    await verify({
      'WEBHOOK-ID': 'evt_1',
      'Webhook-Timestamp': [String(NOW)],
      'webhook-signature': validHeaders['webhook-signature'],
    });
  });

  it('bodies as string, bytes, ArrayBuffer and Buffer', async () => {
    const bytes = new TextEncoder().encode(BODY);
    for (const body of [BODY, bytes, bytes.buffer, Buffer.from(BODY)]) await verify(validHeaders, {}, body);
  });

  it('a valid signature among invalid, unknown and malformed ones', async () => {
    const signature = `v1,AAAA v9,x  v1a,AAAA nonsense ${validHeaders['webhook-signature']}`;
    await verify({ ...validHeaders, 'webhook-signature': signature });
  });

  it('a secret without its prefix', async () => {
    await verify(validHeaders, { secret: SECRET.slice(6) });
  });

  it('upper-case hex, with a malformed -next header', async () => {
    const headers = {
      'x-webhook-signature': `sha256=${hex().slice(7).toUpperCase()}`,
      'x-webhook-signature-next': '?',
    };
    await verify(headers, { profile: 'hex' });
  });

  it('the id is read from the body, not from an unsigned header', async () => {
    const headers = {
      'x-webhook-signature': hex(),
      'x-webhook-id': 'evt_forged',
      'webhook-id': 'evt_forged',
    };
    expect((await verify(headers, { profile: 'hex' })).id).toBe('evt_1');
  });

  it('a header with 50,000 signatures costs no more than 0.1 ms each', async () => {
    const signature = `${'v1,AAAA '.repeat(50_000)}`.trim();
    const startedAt = performance.now();
    await expect(verify({ ...validHeaders, 'webhook-signature': signature })).rejects.toMatchObject({
      reason: 'signature_mismatch',
    });
    // About 0.1 s in all. A busy machine may need ten times as long; a quadratic check would need minutes.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

describe('createVerifier throws a TypeError for', () => {
  it.each([
    ['no secret', { secret: [] }],
    ['an empty secret', { secret: '' }],
    ['a secret that is not base64', { secret: 'whsec_!' }],
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
  it('base64 and hex decode to the encoded bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), (bytes) => {
        const buffer = Buffer.from(bytes);
        expect(Buffer.from(fromBase64(buffer.toString('base64'))!)).toEqual(buffer);
        expect(Buffer.from(fromBase64(buffer.toString('base64').replaceAll('=', ''))!)).toEqual(buffer);
        expect(Buffer.from(fromHex(buffer.toString('hex'))!)).toEqual(buffer);
      }),
    );
  });

  it('invalid text decodes to null, and never throws', () => {
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

  it('equalInConstantTime compares like Buffer.equals', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.uint8Array(), (a, b) => {
        expect(equalInConstantTime(a, b)).toBe(Buffer.from(a).equals(Buffer.from(b)));
        expect(equalInConstantTime(a, Uint8Array.from(a))).toBe(true);
      }),
    );
  });
});
