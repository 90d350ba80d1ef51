/** The key exchange of TLS: the receiver must not choose how much it costs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anEndpoint, attempt } from '../../test/support/attempts.ts';
import { certificates } from '../../test/support/certificates.ts';
import { type ReceiverOptions, startReceiver } from '../../test/support/receiver.ts';
import { createDeliverer, DEVELOPMENT_EGRESS, type Deliverer } from './index.ts';

let deliverer: Deliverer;
beforeAll(() => {
  deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
    ca: [certificates.authority, certificates.rsa.cert],
  });
});
afterAll(() => deliverer.close());

const { valid, rsa, clientOne } = certificates;
const TLS_1_2 = { maxVersion: 'TLSv1.2' } as const;
type Tls = NonNullable<ReceiverOptions['tls']>;

async function deliverTo(tls: Tls, isIdentified = false) {
  const receiver = await startReceiver({ tls });
  const certificate = isIdentified ? { ...clientOne, ca: rsa.cert } : null;
  const outcome = await attempt(deliverer, anEndpoint(receiver.url, { certificate }));
  const requests = receiver.requests.length;
  await receiver.close();
  return { statusCode: outcome.statusCode, error: outcome.error?.class ?? null, requests };
}

describe('the key exchange of TLS', () => {
  it.each<[string, Tls]>([
    ['TLS 1.3', valid],
    ['TLS 1.3 and RSA', rsa],
    ['TLS 1.2', { ...valid, ...TLS_1_2 }],
    ['TLS 1.2 and RSA', { ...rsa, ...TLS_1_2 }],
    ['ChaCha20', { ...valid, ...TLS_1_2, ciphers: 'ECDHE-ECDSA-CHACHA20-POLY1305' }],
    ['CBC', { ...rsa, ...TLS_1_2, ciphers: 'ECDHE-RSA-AES128-SHA' }],
  ])('works with ECDHE: %s', async (_name, tls) => {
    expect(await deliverTo(tls)).toEqual({ statusCode: 200, error: null, requests: 1 });
  });

  it.each([
    ['without a client certificate', false],
    ['with a client certificate', true],
  ])('is refused with DHE, whose parameters the receiver chooses: %s', async (_name, isIdentified) => {
    const tls = { ...rsa, ...TLS_1_2, ciphers: 'DHE-RSA-AES128-GCM-SHA256', dhparam: 'auto' };
    expect(await deliverTo(tls, isIdentified)).toEqual({
      statusCode: null,
      error: 'tls_failed',
      requests: 0,
    });
  });
});
