/** EGR-3: a real CONNECT proxy on loopback, which records what it is sent. */
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { anEndpoint, attempt } from '../../test/support/attempts.ts';
import { certificates } from '../../test/support/certificates.ts';
import { startReceiver } from '../../test/support/receiver.ts';
import { createDeliverer, DEVELOPMENT_EGRESS, type DelivererOptions } from './index.ts';
import { parseProxyUrl } from './proxy.ts';

type OnConnect = (request: IncomingMessage, client: Socket) => void;

const cleanups: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const tunnel: OnConnect = (request, client) => {
  const [host, port] = request.url!.split(':');
  const upstream = connect(Number(port), host, () => {
    client.write('HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n');
    upstream.pipe(client).pipe(upstream);
  });
  upstream.on('error', () => client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
};

async function startProxy(onConnect: OnConnect): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const sockets = new Set<Socket>();
  const server = createServer();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', (request, client) => {
    requests.push(request);
    onConnect(request, client as Socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

function through(proxyUrl: string, overrides: Partial<DelivererOptions> = {}) {
  const deliverer = createDeliverer({
    egress: { ...DEVELOPMENT_EGRESS, requireHttps: false },
    userAgent: 'Posthorn/test',
    publicUrl: 'https://posthorn.test',
    ca: certificates.authority,
    lookup: (_name, done) => done(null, ['127.0.0.1']),
    connectTimeoutMs: 300,
    proxyUrl,
    ...overrides,
  });
  cleanups.push(() => deliverer.close());
  return deliverer;
}

async function startSecure() {
  const receiver = await startReceiver({ tls: certificates.valid, name: 'receiver.test' });
  cleanups.push(() => receiver.close());
  return receiver;
}

describe('EGR-3 through a proxy', () => {
  it('a delivery uses TLS with the name, and the proxy gets only the vetted address', async () => {
    const proxy = await startProxy(tunnel);
    const receiver = await startSecure();
    const deliverer = through(`http://user:p%40ss@${proxy.url}`);
    for (let i = 0; i < 2; i += 1) {
      const outcome = await attempt(deliverer, anEndpoint(`${receiver.url}/hook`));
      expect(outcome.error).toBeNull();
    }
    expect(receiver.requests).toHaveLength(2);
    expect(proxy.requests).toHaveLength(1);
    expect(proxy.requests[0]?.url).toBe(`127.0.0.1:${receiver.port}`);
    const expected = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(expected);
    expect(receiver.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  it('plain http is tunnelled as well', async () => {
    const proxy = await startProxy(tunnel);
    const receiver = await startReceiver();
    cleanups.push(() => receiver.close());
    const outcome = await attempt(
      through(`http://${proxy.url}`),
      anEndpoint(`http://plain.test:${receiver.port}/`),
    );
    expect(outcome.error).toBeNull();
    expect(receiver.requests[0]?.headers.host).toBe(`plain.test:${receiver.port}`);
  });

  it('the guard still applies', async () => {
    const proxy = await startProxy(tunnel);
    const deliverer = through(`http://${proxy.url}`, {
      lookup: (_name, done) => done(null, ['169.254.169.254']),
    });
    const outcome = await attempt(deliverer, anEndpoint('https://rebound.test/'));
    expect(outcome.error?.class).toBe('egress_forbidden');
    expect(proxy.requests).toHaveLength(0);
  });

  const refusals: [string, OnConnect, string][] = [
    ['says 407', (_request, client) => client.end('HTTP/1.1 407 No\r\n\r\n'), 'proxy_failed'],
    ['says 403', (_request, client) => client.end('HTTP/1.1 403 No\r\n\r\n'), 'proxy_failed'],
    [
      'cannot reach the receiver',
      (_request, client) => client.end('HTTP/1.1 502 No\r\n\r\n'),
      'connection_failed',
    ],
    ['talks nonsense', (_request, client) => client.end('nonsense\r\n\r\n'), 'proxy_failed'],
    ['closes', (_request, client) => client.end(), 'proxy_failed'],
    ['resets', (_request, client) => client.resetAndDestroy(), 'proxy_failed'],
    ['never answers', () => {}, 'connect_timeout'],
    [
      'sends headers without end',
      (_request, client) => {
        const more = (): void => {
          while (!client.destroyed && client.write('x: y\r\n'.repeat(1000)));
        };
        client.write('HTTP/1.1 200 OK\r\n');
        client.on('drain', more);
        more();
      },
      'proxy_failed',
    ],
  ];
  it.each(refusals)('a proxy that %s', async (_what, onConnect, errorClass) => {
    const proxy = await startProxy(onConnect);
    const outcome = await attempt(through(`http://${proxy.url}`), anEndpoint('https://receiver.test/'));
    expect(outcome.error?.class).toBe(errorClass);
  });

  it('a proxy that does not listen fails the attempt', async () => {
    const outcome = await attempt(through('http://127.0.0.1:1'), anEndpoint('https://receiver.test/'));
    expect(outcome.error).toEqual({
      class: 'proxy_failed',
      message: 'The egress proxy failed (ECONNREFUSED).',
    });
  });
});

it.each(['', 'socks5://a:1', 'https://a:1', 'a:1'])('"%s" is not a valid proxy URL', (url) => {
  expect(() => parseProxyUrl(url)).toThrow(TypeError);
});
