/** DLV-7: client certificates, with receivers that ask for them. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { anEndpoint, attempt } from '../../test/support/attempts.ts';
import { redirect } from '../../test/support/behaviours.ts';
import { certificates } from '../../test/support/certificates.ts';
import { type Receiver, startReceiver } from '../../test/support/receiver.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import { createDeliverer, DEVELOPMENT_EGRESS, type Deliverer } from './index.ts';

const { clientOne, clientTwo, clientAuthority } = certificates;
const KEEP_ALIVE_MS = 200;

let deliverer: Deliverer;
let strict: Receiver;
let curious: Receiver;
const clear = (...receivers: Receiver[]): void => {
  for (const one of receivers) {
    one.answer({});
    (one.requests as unknown[]).length = 0;
  }
};
beforeAll(async () => {
  deliverer = createDeliverer({
    egress: DEVELOPMENT_EGRESS,
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
    ca: certificates.authority,
    keepAliveMs: KEEP_ALIVE_MS,
  });
  const options = { tls: certificates.valid, clientAuthority };
  strict = await startReceiver(options);
  curious = await startReceiver({ ...options, withoutCertificate: 'accept' });
});
afterEach(() => clear(strict, curious));
afterAll(async () => {
  await deliverer.close();
  await Promise.all([strict.close(), curious.close()]);
});

const [ONE, TWO, THREE] = [1, 2, 3].map((n) => `01890a5d-ac96-774b-bcce-00000000000${n}`) as [
  string,
  string,
  string,
];
const withCertificate = (
  to: Receiver,
  id: string,
  pair: { cert: string; key: string } | null,
  overrides: Partial<Endpoint> = {},
): Endpoint => anEndpoint(to.url, { id, certificate: pair && { ...pair, ca: null }, ...overrides });
const names = (of: Receiver) => of.requests.map(({ clientName }) => clientName);

describe('DLV-7: a client certificate', () => {
  it('is accepted by a receiver that requires one', async () => {
    const outcome = await attempt(deliverer, withCertificate(strict, ONE, clientOne));
    expect(outcome).toMatchObject({ statusCode: 200, error: null });
    expect(names(strict)).toEqual(['client-one']);
    expect(JSON.stringify(outcome)).not.toContain('PRIVATE KEY');
  });

  it('is required by such a receiver', async () => {
    const outcome = await attempt(deliverer, withCertificate(strict, ONE, null));
    expect(outcome.statusCode).toBeNull();
    expect(['tls_failed', 'connection_reset']).toContain(outcome.error?.class);
    expect(strict.requests).toHaveLength(0);
  });

  it('is sent even if it has expired, and the receiver rejects it', async () => {
    const outcome = await attempt(deliverer, withCertificate(strict, ONE, certificates.clientExpired));
    expect(outcome.statusCode).toBeNull();
    expect(strict.requests).toHaveLength(0);
  });

  it('fails only its own endpoint if it cannot be used', async () => {
    const endpoint = withCertificate(strict, ONE, { cert: 'nonsense', key: clientOne.key });
    expect((await attempt(deliverer, endpoint)).error?.class).toBe('tls_failed');
    expect((await attempt(deliverer, withCertificate(strict, ONE, clientOne))).error).toBeNull();
  });

  it('never shares a connection or a session with another certificate or endpoint, or with none', async () => {
    // All to the same origin, one after the other, so that there is always an idle connection that must not be reused.
    const order = [
      withCertificate(curious, ONE, clientOne),
      withCertificate(curious, TWO, clientTwo),
      withCertificate(curious, THREE, null),
      withCertificate(curious, TWO, clientOne),
      withCertificate(curious, ONE, clientOne),
      withCertificate(curious, THREE, null),
      withCertificate(curious, TWO, clientTwo),
    ];
    for (const endpoint of order) expect((await attempt(deliverer, endpoint)).error).toBeNull();
    expect(names(curious)).toEqual([
      'client-one',
      'client-two',
      null,
      'client-one',
      'client-one',
      null,
      'client-two',
    ]);
    const on = curious.requests.map(({ connection }) => connection);
    // Two endpoints with the same certificate do not share a connection; one endpoint reuses its own.
    expect(on[3]).not.toBe(on[0]);
    expect([on[4], on[5], on[6]]).toEqual([on[0], on[2], on[1]]);
    expect(new Set(on).size).toBe(4);

    // After all connections are closed, each endpoint resumes its own session.
    await curious.waitForNoSockets();
    clear(curious);
    for (const endpoint of order.slice(0, 3)) await attempt(deliverer, endpoint);
    expect(names(curious)).toEqual(['client-one', 'client-two', null]);
  });

  it('is no longer used after a change, and its connections close', async () => {
    const endpoint = withCertificate(curious, ONE, clientOne);
    await attempt(deliverer, endpoint);
    await attempt(deliverer, { ...endpoint, certificate: { ...clientTwo, ca: null } });
    await attempt(deliverer, { ...endpoint, certificate: null });
    expect(names(curious)).toEqual(['client-one', 'client-two', null]);
    await curious.waitForNoSockets();
  });

  it('is not sent to another origin when the receiver redirects', async () => {
    strict.answer(redirect(`${curious.url}/elsewhere`, 307));
    await attempt(deliverer, withCertificate(strict, ONE, clientOne, { followRedirects: 1 }));
    expect([names(strict), names(curious)]).toEqual([['client-one'], [null]]);

    clear(strict, curious);
    strict.answer(({ path }) =>
      path === '/' ? { status: 307, headers: { location: '/there' } } : { status: 200 },
    );
    const inside = withCertificate(strict, ONE, clientOne, { url: `${strict.url}/`, followRedirects: 1 });
    expect((await attempt(deliverer, inside)).statusCode).toBe(200);
    expect(names(strict)).toEqual(['client-one', 'client-one']);
  });

  it('`ca` verifies the receiver, for this endpoint alone', async () => {
    const own = await startReceiver({ tls: certificates.selfSigned, clientAuthority });
    try {
      const trusting = withCertificate(own, ONE, null, {
        certificate: { ...clientOne, ca: certificates.selfSigned.cert },
      });
      expect((await attempt(deliverer, trusting)).error).toBeNull();
      const other = withCertificate(own, TWO, clientTwo);
      expect((await attempt(deliverer, other)).error?.class).toBe('tls_untrusted');
      const publicOnly = { ...trusting, url: strict.url };
      expect((await attempt(deliverer, publicOnly)).error?.class).toBe('tls_untrusted');
    } finally {
      await own.close();
    }
  });

  it('can be combined with basic and bearer credentials', async () => {
    const basic = { type: 'basic', username: 'us er', password: 'pä:ss' } as const;
    await attempt(deliverer, withCertificate(strict, ONE, clientOne, { auth: basic }));
    await attempt(
      deliverer,
      withCertificate(strict, ONE, clientOne, { auth: { type: 'bearer', token: 'abc' } }),
    );
    expect(strict.requests.map(({ headers }) => headers.authorization)).toEqual([
      `Basic ${Buffer.from('us er:pä:ss').toString('base64')}`,
      'Bearer abc',
    ]);
  });
});
