/** Each adapter in the real framework, over a real socket, with what Posthorn sends. */
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

interface Running {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a server with a webhook route `/hook`, and a route `/parsed` where something has parsed the body before. */
type Start = (options: AdapterOptions, seen: VerifiedWebhook[]) => Promise<Running>;

const running = (server: Server): Promise<Running> =>
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

const startExpress: Start = (options, seen) => {
  const app = express();
  const handler: express.RequestHandler = (request, response) => {
    const webhook = ofExpress(request);
    seen.push(webhook);
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
  return running(createServer(app));
};

const startFastify: Start = async (options, seen) => {
  const app = Fastify();
  await app.register((scope, _options, done) => {
    receiveWebhooks(scope, options);
    scope.post('/hook', async (request, reply) => {
      const webhook = ofFastify(request);
      expect(request.body).toEqual(webhook.payload);
      seen.push(webhook);
      return reply.code(204).send();
    });
    done();
  });
  app.post('/other', async (request) => request.body);
  return { url: await app.listen({ port: 0, host: '127.0.0.1' }), close: () => app.close() };
};

const startHono: Start = (options, seen) => {
  const app = new Hono<WebhookEnv>();
  app.post('/hook', honoWebhook(options), (c) => {
    seen.push(c.get('webhook'));
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
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
      resolve({
        url: `http://127.0.0.1:${port}`,
        close: () => new Promise((closed) => void server.close(() => closed())),
      }),
    );
  });
};

/** As Next.js calls a route handler: with a web Request, and a context as the second argument. */
const startNext: Start = (options, seen) => {
  const POST = webhookHandler<unknown, [{ params: Promise<{ slug: string }> }]>(
    options,
    async (webhook, request, { params }) => {
      expect(request.method).toBe('POST');
      expect(await params).toEqual({ slug: 'hook' });
      seen.push(webhook);
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
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
      resolve({
        url: `http://127.0.0.1:${port}`,
        close: () => new Promise((closed) => void server.close(() => closed())),
      }),
    );
  });
};

let right: RecordedRequest;
let large: RecordedRequest;
beforeAll(async () => {
  right = await deliver({ ...secrets(SECRET) });
  large = await deliver({ ...secrets(SECRET) }, `"${'x'.repeat(LIMIT)}"`);
});

const send = (url: string, { body, headers }: RecordedRequest, chunked = false): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: withoutFraming(headers),
    body: chunked ? new Blob([Uint8Array.from(body)]).stream() : Uint8Array.from(body),
    ...(chunked && { duplex: 'half' }),
  } as RequestInit);

function withoutFraming(all: Readonly<Record<string, string>>): Record<string, string> {
  const { host: _host, 'content-length': _length, connection: _connection, ...headers } = all;
  return headers;
}

describe.each([
  ['Express', startExpress, ['/hook', '/raw', '/text']],
  ['Fastify', startFastify, ['/hook']],
  ['Hono', startHono, ['/hook']],
  ['Next.js', startNext, ['/hook']],
] as [string, Start, string[]][])('%s', (name, start, routes) => {
  const seen: VerifiedWebhook[] = [];
  const rejected: VerificationError[] = [];
  let server: Running;
  beforeAll(async () => {
    const options = {
      secret: SECRET,
      maxBodyBytes: LIMIT,
      onRejected: (e: VerificationError) => rejected.push(e),
    };
    server = await start(options, seen);
  });
  afterAll(() => server.close());

  it.each(routes)('verifies what Posthorn sends: %s', async (route) => {
    for (const chunked of [false, true]) {
      expect((await send(`${server.url}${route}`, right, chunked)).status).toBe(204);
      const webhook = seen.at(-1)!;
      expect(webhook.id).toBe(right.headers['webhook-id']);
      expect(Buffer.from(webhook.body)).toEqual(right.body);
      expect(webhook.payload).toMatchObject({ data: { text: 'grüße 🎺' } });
    }
  });

  it('refuses a forgery with 401, the reason, and no call of the handler', async () => {
    const before = seen.length;
    const forged = { ...right, body: Buffer.from('{"id":"evt_1"}') };
    const answer = await send(`${server.url}/hook`, forged);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await answer.json()).toEqual({ error: 'signature_mismatch' });
    expect(rejected.at(-1)?.reason).toBe('signature_mismatch');
    expect(seen.length).toBe(before);
  });

  it('refuses a request without headers or body', async () => {
    const answer = await fetch(`${server.url}/hook`, { method: 'POST' });
    expect([answer.status, await answer.json()]).toEqual([401, { error: 'missing_header' }]);
  });

  it('refuses a body past the limit, with and without its length announced', async () => {
    const before = seen.length;
    for (const chunked of [false, true]) {
      const status = await send(`${server.url}/hook`, large, chunked).then(
        (answer) => answer.status,
        // Closed while it was still being sent: as good an answer.
        () => 413,
      );
      expect(status).toBe(413);
    }
    expect(seen.length).toBe(before);
  });

  it('leaves other routes alone', async () => {
    const answer = await fetch(`${server.url}/other`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"a":1}',
    });
    expect(await answer.json()).toEqual({ a: 1 });
  });

  // In Fastify it cannot happen: the scope takes the parsers out.
  if (name === 'Fastify') return;
  it('says so if the body was parsed before', async () => {
    const answer = await send(`${server.url}/parsed`, right);
    expect([answer.status, await answer.json()]).toEqual([500, { error: 'body_already_parsed' }]);
  });
});

it('Express: what a handler throws goes to the error handler, not into the void', async () => {
  const seen: VerifiedWebhook[] = [];
  const server = await startExpress({ secret: SECRET, profile: 'hex' }, seen);
  const { createHmac } = await import('node:crypto');
  const body = '{"type":"order.fails"}';
  const signature = `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`;
  const answer = await fetch(`${server.url}/hook`, {
    method: 'POST',
    headers: { 'x-webhook-signature': signature },
    body,
  });
  expect([answer.status, seen.length]).toEqual([599, 1]);
  await server.close();
});
