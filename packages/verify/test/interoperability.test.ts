/** SIG-6: other libraries verify requests of Posthorn, and this package verifies requests of Posthorn and of other senders. */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import { beforeAll, describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../../test/support/receiver.ts';
import { createVerifier, type VerifierOptions } from '../src/index.ts';
import {
  deliver,
  NEW_SECRET,
  PRIVATE_KEY,
  PUBLIC_KEY,
  SECRET,
  type Signing,
  secrets,
} from './testing/signing.ts';

const stripe = new Stripe('sk_test_not_used');
const OTHER_SECRET = 'whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';

/** How an endpoint signs, and how its receiver verifies. */
const profiles: Record<string, { signing: Signing; verifying: Omit<VerifierOptions, 'secret'> }> = {
  standard: { signing: { signature: 'standard' }, verifying: {} },
  hex: { signing: { signature: 'hex' }, verifying: { profile: 'hex' } },
  stripe: { signing: { signature: 'stripe' }, verifying: { profile: 'stripe' } },
  github: { signing: { signature: 'github' }, verifying: { profile: 'github' } },
  'hex in another header': {
    signing: { signature: { profile: 'hex', header: 'X-Acme-Signature', prefix: 'v0=' } },
    verifying: { profile: 'hex', header: 'X-Acme-Signature', prefix: 'v0=' },
  },
  'standard in another header': {
    signing: { signature: { profile: 'standard', header: 'x-acme-signature', prefix: 'a;' } },
    verifying: { header: 'X-Acme-Signature', prefix: 'a;' },
  },
  'stripe in another header': {
    signing: { signature: { profile: 'stripe', header: 'acme-signature', prefix: 'v9=' } },
    verifying: { profile: 'stripe', header: 'acme-signature', prefix: 'v9=' },
  },
};

describe.each(Object.entries(profiles))(
  'this package verifies requests of Posthorn: %s',
  (_name, profile) => {
    const verify = (secret: string | string[], { body, headers }: RecordedRequest) =>
      createVerifier({ ...profile.verifying, secret }).verify(body, headers);
    let request: RecordedRequest;
    let rotationRequest: RecordedRequest;
    beforeAll(async () => {
      request = await deliver({ ...profile.signing, ...secrets(SECRET) });
      rotationRequest = await deliver({ ...profile.signing, ...secrets(NEW_SECRET, SECRET) });
    });

    it('returns the signed id, type and payload', async () => {
      const webhook = await verify(SECRET, request);
      expect(webhook).toMatchObject({ id: request.headers['webhook-id'], type: 'order.created' });
      expect(webhook.payload).toMatchObject({ data: { order: 1, text: 'grüße 🎺' } });
      expect(Buffer.from(webhook.body)).toEqual(request.body);
    });

    it('SIG-4: verifies with the old and with the new secret during a rotation', async () => {
      await verify(SECRET, rotationRequest);
      await verify(NEW_SECRET, rotationRequest);
      await expect(verify(OTHER_SECRET, rotationRequest)).rejects.toMatchObject({
        reason: 'signature_mismatch',
      });
    });

    it('SIG-4: verifies with the old and with the new secret after the new one has taken over the header', async () => {
      const [newest, oldest] = secrets(NEW_SECRET, SECRET).secrets;
      const switched = await deliver({
        ...profile.signing,
        secrets: [{ ...newest!, mainFrom: Date.now() - 1000 }, oldest!],
      });
      await verify(NEW_SECRET, switched);
      await verify(SECRET, switched);
      await expect(verify(OTHER_SECRET, switched)).rejects.toMatchObject({ reason: 'signature_mismatch' });
    });

    it('accepts a list of secrets', async () => {
      await verify([OTHER_SECRET, SECRET], request);
      await expect(verify([OTHER_SECRET, NEW_SECRET], request)).rejects.toMatchObject({
        reason: 'signature_mismatch',
      });
    });

    it('rejects a body with one byte added, removed or changed', async () => {
      const changed = Buffer.from(request.body);
      changed[changed.length - 3]! ^= 1;
      for (const body of [changed, request.body.subarray(1), Buffer.concat([request.body, Buffer.from(' ')])])
        await expect(verify(SECRET, { ...request, body })).rejects.toMatchObject({
          reason: 'signature_mismatch',
        });
    });
  },
);

describe('v1a', () => {
  const signing: Signing = { signature: 'standard-ed25519', ...secrets(PRIVATE_KEY) };

  it('verifies with the public key', async () => {
    const { body, headers } = await deliver(signing);
    const webhook = await createVerifier({ secret: PUBLIC_KEY }).verify(body, headers);
    expect(webhook.id).toBe(headers['webhook-id']);
    await createVerifier({ secret: [SECRET, PUBLIC_KEY] }).verify(body, headers);
    const forged = Buffer.concat([body, Buffer.from(' ')]);
    await expect(createVerifier({ secret: PUBLIC_KEY }).verify(forged, headers)).rejects.toMatchObject({
      reason: 'signature_mismatch',
    });
    await expect(createVerifier({ secret: SECRET }).verify(body, headers)).rejects.toMatchObject({
      reason: 'unsupported_signature',
    });
  });

  it('verifies with a custom prefix', async () => {
    const signature = { profile: 'standard-ed25519', header: null, prefix: 'own:' } as never;
    const { body, headers } = await deliver({ ...signing, signature });
    await createVerifier({ secret: PUBLIC_KEY, prefix: 'own:' }).verify(body, headers);
  });
});

describe('other libraries verify requests of Posthorn', () => {
  it.each([
    ['standardwebhooks', StandardWebhook],
    ['svix', SvixWebhook],
  ])('%s, with the old and the new secret', async (_name, Webhook) => {
    const { body, headers } = await deliver({ signature: 'standard', ...secrets(NEW_SECRET, SECRET) });
    for (const secret of [SECRET, NEW_SECRET])
      expect(() => new Webhook(secret).verify(body.toString(), headers)).not.toThrow();
    expect(() => new Webhook(OTHER_SECRET).verify(body.toString(), headers)).toThrow();
  });

  it('stripe, with the old and the new secret', async () => {
    const { body, headers } = await deliver({ signature: 'stripe', ...secrets(NEW_SECRET, SECRET) });
    for (const secret of [SECRET, NEW_SECRET])
      expect(stripe.webhooks.constructEvent(body, headers['stripe-signature']!, secret)).toMatchObject({
        type: 'order.created',
      });
    expect(() => stripe.webhooks.constructEvent(body, headers['stripe-signature']!, OTHER_SECRET)).toThrow();
  });
});

describe('this package verifies requests of other senders', () => {
  const body = '{"type":"order.created","data":{"text":"grüße"}}';
  const now = new Date();
  const seconds = String(Math.floor(now.getTime() / 1000));

  it.each([
    ['standardwebhooks', StandardWebhook],
    ['svix', SvixWebhook],
  ])('%s', async (_name, Webhook) => {
    const headers = {
      'Webhook-Id': 'msg_1',
      'Webhook-Timestamp': seconds,
      'Webhook-Signature': new Webhook(SECRET).sign('msg_1', now, body),
    };
    const webhook = await createVerifier({ secret: SECRET }).verify(body, headers);
    expect(webhook).toMatchObject({ id: 'msg_1', timestamp: new Date(Number(seconds) * 1000) });
  });

  it('stripe', async () => {
    const payload = '{"id":"evt_1","object":"event","type":"charge.failed"}';
    const header = stripe.webhooks.generateTestHeaderString({ payload, secret: 'whsec_test_secret' });
    const verifier = createVerifier({ secret: 'whsec_test_secret', profile: 'stripe' });
    expect(await verifier.verify(payload, { 'stripe-signature': header })).toMatchObject({
      id: 'evt_1',
      type: 'charge.failed',
    });
  });

  it('GitHub, whose events have no id: the id is a digest of the body', async () => {
    const signature = createHmac('sha256', 'a secret').update(body).digest('hex');
    const verifier = createVerifier({ secret: 'a secret', profile: 'github' });
    const headers = { 'x-hub-signature-256': `sha256=${signature}`, 'x-github-delivery': 'anything' };
    const { id, timestamp } = await verifier.verify(body, headers);
    expect(id).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(timestamp).toBeNull();
  });
});

describe('test vectors', () => {
  interface Vector {
    scheme: 'v1' | 'v1a' | 'github';
    secret?: string;
    public_key?: string;
    id?: string;
    timestamp?: number;
    body: string;
    signature: string;
  }
  const { vectors } = JSON.parse(
    readFileSync(new URL('../../../test/vectors/standard-webhooks.json', import.meta.url), 'utf8'),
  ) as { vectors: Vector[] };

  it.each(vectors)('$scheme $id', async (vector) => {
    const verifier = createVerifier({
      secret: vector.public_key ?? vector.secret!,
      profile: vector.scheme === 'github' ? 'github' : 'standard',
      now: () => (vector.timestamp ?? 0) * 1000,
    });
    const result = verifier.verify(vector.body, {
      'webhook-id': vector.id,
      'webhook-timestamp': String(vector.timestamp),
      [vector.scheme === 'github' ? 'x-hub-signature-256' : 'webhook-signature']: vector.signature,
    });
    // The body of these vectors is not JSON, which is reported only after the signature was valid.
    if (vector.body === 'Hello, World!')
      await expect(result).rejects.toMatchObject({ reason: 'malformed_body' });
    else expect((await result).id).toBe(vector.id);
  });
});
