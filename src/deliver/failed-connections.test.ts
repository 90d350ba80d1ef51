/** DLV-5: connections that fail before a request can be sent, in TCP or TLS. */
import { describe, expect, it } from 'vitest';
import { anEndpoint, attempt } from '../../test/support/attempts.ts';
import { certificates } from '../../test/support/certificates.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { listen } from '../../test/support/tcp-server.ts';
import { createDeliverer, DEVELOPMENT_EGRESS } from './index.ts';

const options = {
  egress: DEVELOPMENT_EGRESS,
  userAgent: 'Posthorn/test',
  publicUrl: 'https://posthorn.test',
  ca: certificates.authority,
};

describe.concurrent('TLS', () => {
  const bad = [
    ['expired', certificates.expired, 'tls_expired'],
    ['for another name', certificates.otherName, 'tls_name_mismatch'],
    ['self-signed', certificates.selfSigned, 'tls_untrusted'],
  ] as const;

  it.for(bad)('a certificate that is %s', async ([, tls, errorClass], { expect }) => {
    const receiver = await startReceiver({ tls });
    const deliverer = createDeliverer(options);
    const outcome = await attempt(deliverer, anEndpoint(receiver.url));
    expect(outcome.error?.class).toBe(errorClass);
    expect(receiver.requests).toHaveLength(0);
    await receiver.waitForNoSockets();
    await deliverer.close();
    await receiver.close();
  });

  it('a certificate of an unknown authority', async ({ expect }) => {
    const receiver = await startReceiver({ tls: certificates.valid });
    const { ca: _ca, ...builtIn } = options;
    const deliverer = createDeliverer(builtIn);
    const outcome = await attempt(deliverer, anEndpoint(receiver.url));
    expect(outcome.error?.class).toBe('tls_untrusted');
    await deliverer.close();
    await receiver.close();
  });

  it('a receiver that speaks plain HTTP on that port', async ({ expect }) => {
    const receiver = await startReceiver();
    const deliverer = createDeliverer(options);
    const outcome = await attempt(deliverer, anEndpoint(receiver.url.replace('http:', 'https:')));
    expect(outcome.error?.class).toBe('tls_failed');
    await deliverer.close();
    await receiver.close();
  });

  it('a TLS receiver that is called by plain HTTP', async ({ expect }) => {
    const receiver = await startReceiver({ tls: certificates.valid });
    const deliverer = createDeliverer(options);
    const outcome = await attempt(deliverer, anEndpoint(receiver.url.replace('https:', 'http:')));
    expect(['response_invalid', 'connection_reset']).toContain(outcome.error?.class);
    await deliverer.close();
    await receiver.close();
  });

  it.for([
    ['the connect timeout', 100, 20_000],
    ['the deadline if that is sooner', 20_000, 100],
  ] as const)('a handshake that stalls ends at %s', async ([, connectTimeoutMs, timeoutMs], { expect }) => {
    const silent = await listen((socket) => socket.on('error', () => {}));
    const deliverer = createDeliverer({ ...options, connectTimeoutMs });
    const endpoint = anEndpoint(silent.url.replace('http:', 'https:'), { timeoutMs });
    const outcome = await attempt(deliverer, endpoint);
    expect(outcome.error?.class).toBe('connect_timeout');
    expect(outcome.durationMs).toBeLessThan(10_000);
    await silent.noSockets();
    await deliverer.close();
    await silent.close();
  });

  it('a handshake that is cut off', async ({ expect }) => {
    const rude = await listen((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.destroy());
    });
    const deliverer = createDeliverer(options);
    const outcome = await attempt(deliverer, anEndpoint(rude.url.replace('http:', 'https:')));
    expect(outcome.error?.class).toBe('tls_failed');
    await deliverer.close();
    await rude.close();
  });
});

it('a port without a listener refuses the connection', async () => {
  const receiver = await startReceiver();
  await receiver.close();
  const deliverer = createDeliverer(options);
  const outcome = await attempt(deliverer, anEndpoint(receiver.url));
  expect(outcome.error).toEqual({
    class: 'connect_refused',
    message: 'The connection was refused (ECONNREFUSED).',
  });
  await deliverer.close();
});
