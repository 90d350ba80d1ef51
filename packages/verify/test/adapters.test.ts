/** Each adapter in its real framework, over a real socket, with requests that Posthorn sent. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RecordedRequest } from '../../../test/support/receiver.ts';
import { verifyWebhook as expressWebhook, webhookOf as ofExpress } from '../src/express.ts';
import { webhookOf as ofFastify, receiveWebhooks } from '../src/fastify.ts';
import { verifyWebhook as honoWebhook, type WebhookEnv } from '../src/hono.ts';
import type { VerificationError, VerifiedWebhook } from '../src/index.ts';
import type { AdapterOptions } from '../src/raw-body.ts';
import { webhookHandler } from '../src/web.ts';
import { deliver, SECRET, secrets } from './testing/signing.ts';

const LIMIT = 100_000;

interface RunningServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a server with a webhook route `/hook`, and a route `/parsed` whose body is parsed before verification. */
type StartServer = (options: AdapterOptions, received: VerifiedWebhook[]) => Promise<RunningServer>;

const listen = (server: Server): Promise<RunningServer> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve({
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      }),
    );
  });

const serveFetch = (fetch: Parameters<typeof serve>[0]['fetch']): Promise<RunningServer> =>
  new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
      resolve({
        url: `http://127.0.0.1:${port}`,
        close: () => new Promise((closed) => void server.close(() => closed())),
      }),
    );
  });

const startExpress: StartServer = (options, received) => {
  const app = express();
  const handler: express.RequestHandler = (request, response) => {
    const webhook = ofExpress(request);
    received.push(webhook);
    if (webhook.type === 'order.fails') throw new Error('the handler fails');
    response.status(204).end();
  };
  app.post('/hook', expressWebhook(options), handler);
  app.post('/raw', express.raw({ type: '*/*' }), expressWebhook(options), handler);
  app.post('/text', express.text({ type: '*/*' }), expressWebhook(options), handler);
  app.use(express.json());
  app.post('/parsed', expressWebhook(options), handler);
  app.post('/other', (request, response) => {
    expect(() => ofExpress(request)).toThrow(TypeError);
    response.json(request.body);
  });
  app.use(((_error, _request, response, _next) => {
    response.status(599).end();
  }) as express.ErrorRequestHandler);
  return listen(createServer(app));
};

const startFastify: StartServer = async (options, received) => {
  const app = Fastify();
  await app.register((scope, _options, done) => {
    receiveWebhooks(scope, options);
    scope.post('/hook', async (request, reply) => {
      const webhook = ofFastify(request);
      expect(request.body).toEqual(webhook.payload);
      received.push(webhook);
      return reply.code(204).send();
    });
    done();
  });
  app.post('/other', async (request) => request.body);
  return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() };
};

const startHono: StartServer = (options, received) => {
  const app = new Hono<WebhookEnv>();
  app.post('/hook', honoWebhook(options), (c) => {
    received.push(c.get('webhook'));
    return c.body(null, 204);
  });
  app.post(
    '/parsed',
    async (c, next) => {
      await c.req.json();
      await next();
    },
    honoWebhook(options),
    (c) => c.body(null, 204),
  );
  app.post('/other', async (c) => c.json(await c.req.json()));
  return serveFetch(app.fetch);
};

/** Calls the route handler as Next.js does: with a web Request, and a context as the second argument. */
const startNext: StartServer = (options, received) => {
  const POST = webhookHandler<unknown, [{ params: Promise<{ slug: string }> }]>(
    options,
    async (webhook, request, { params }) => {
      expect(request.method).toBe('POST');
      expect(await params).toEqual({ slug: 'hook' });
      received.push(webhook);
      return new Response(null, { status: 204 });
    },
  );
  const context = { params: Promise.resolve({ slug: 'hook' }) };
  const app = new Hono();
  app.post('/hook', (c) => POST(c.req.raw, context));
  app.post('/parsed', async (c) => {
    await c.req.raw.text();
    return POST(c.req.raw, context);
  });
  app.post('/other', async (c) => c.json(await c.req.json()));
  return serveFetch(app.fetch);
};

let validRequest: RecordedRequest;
let largeRequest: RecordedRequest;
beforeAll(async () => {
  validRequest = await deliver({ ...secrets(SECRET) });
  largeRequest = await deliver({ ...secrets(SECRET) }, `"${'x'.repeat(LIMIT)}"`);
});

const send = (url: string, { body, headers }: RecordedRequest, chunked = false): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: removeFramingHeaders(headers),
    body: chunked ? new Blob([Uint8Array.from(body)]).stream() : Uint8Array.from(body),
    ...(chunked && { duplex: 'half' }),
  } as RequestInit);

function removeFramingHeaders(all: Readonly<Record<string, string>>): Record<string, string> {
  const { host: _host, 'content-length': _length, connection: _connection, ...headers } = all;
  return headers;
}

describe.each([
  ['Express', startExpress, ['/hook', '/raw', '/text']],
  ['Fastify', startFastify, ['/hook']],
  ['Hono', startHono, ['/hook']],
  ['Next.js', startNext, ['/hook']],
] as [string, StartServer, string[]][])('%s', (name, start, routes) => {
  const received: VerifiedWebhook[] = [];
  const rejected: VerificationError[] = [];
  let server: RunningServer;
  beforeAll(async () => {
    const options = {
      secret: SECRET,
      maxBodyBytes: LIMIT,
      onRejected: (e: VerificationError) => rejected.push(e),
    };
    server = await start(options, received);
  });
  afterAll(() => server.close());

  it.each(routes)('verifies a request of Posthorn: %s', async (route) => {
    for (const chunked of [false, true]) {
      expect((await send(`${server.url}${route}`, validRequest, chunked)).status).toBe(204);
      const webhook = received.at(-1)!;
      expect(webhook.id).toBe(validRequest.headers['webhook-id']);
      expect(Buffer.from(webhook.body)).toEqual(validRequest.body);
      expect(webhook.payload).toMatchObject({ data: { text: 'grüße 🎺' } });
    }
  });

  it('rejects a forged request with 401 and the reason, without calling the handler', async () => {
    const before = received.length;
    const forged = { ...validRequest, body: Buffer.from('{"id":"evt_1"}') };
    const response = await send(`${server.url}/hook`, forged);
    expect(response.status).toBe(401);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toEqual({ error: 'signature_mismatch' });
    expect(rejected.at(-1)?.reason).toBe('signature_mismatch');
    expect(received.length).toBe(before);
  });

  it('rejects a request without headers and body', async () => {
    const response = await fetch(`${server.url}/hook`, { method: 'POST' });
    expect([response.status, await response.json()]).toEqual([401, { error: 'missing_header' }]);
  });

  it('rejects a body above the limit, with and without content-length', async () => {
    const before = received.length;
    for (const chunked of [false, true]) {
      const status = await send(`${server.url}/hook`, largeRequest, chunked).then(
        (response) => response.status,
        // The server closed the connection while the client was still sending.
        () => 413,
      );
      expect(status).toBe(413);
    }
    expect(received.length).toBe(before);
  });

  it('does not affect other routes', async () => {
    const response = await fetch(`${server.url}/other`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"a":1}',
    });
    expect(await response.json()).toEqual({ a: 1 });
  });

  // Not possible in Fastify: receiveWebhooks removes the parsers.
  if (name === 'Fastify') return;
  it('answers 500 if the body was parsed before verification', async () => {
    const response = await send(`${server.url}/parsed`, validRequest);
    expect([response.status, await response.json()]).toEqual([500, { error: 'body_already_parsed' }]);
  });
});

it('Express: an error of the handler reaches the error middleware', async () => {
  const received: VerifiedWebhook[] = [];
  const server = await startExpress({ secret: SECRET, profile: 'hex' }, received);
  const { createHmac } = await import('node:crypto');
  const body = '{"type":"order.fails"}';
  const signature = `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
  const response = await fetch(`${server.url}/hook`, {
    method: 'POST',
    headers: { 'x-webhook-signature': signature },
    body,
  });
  expect([response.status, received.length]).toEqual([599, 1]);
  await server.close();
});
