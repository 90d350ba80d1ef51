/** DLV-2, DLV-5, DLV-6, EGR-1: whatever a receiver does, an attempt ends in time, has a class and leaves no socket. */
import { gzipSync } from 'node:zlib';
import { describe, it, type TestContext } from 'vitest';
import { anEndpoint, anEvent, attempt } from '../../test/support/attempts.ts';
import {
  drip,
  flood,
  raw,
  rawThenClose,
  rawThenReset,
  redirect,
  reset,
} from '../../test/support/behaviours.ts';
import { certificates } from '../../test/support/certificates.ts';
import { type Behaviour, type Reply, startReceiver } from '../../test/support/receiver.ts';
import { listen } from '../../test/support/tcp-server.ts';
import type { Endpoint } from '../domain/endpoint.ts';
import type { ErrorClass } from '../domain/outcome.ts';
import { createDeliverer, DEVELOPMENT_EGRESS } from './index.ts';

const CAP = 16 * 1024;
/** A long deadline if the receiver ends the exchange (the machine may be busy), a short one if the deadline does. */
const AMPLE = 8000;
/** Enough for a machine that is busy with other tests to connect. */
const DEADLINE = 2500;
const OK = 'HTTP/1.1 200 OK\r\n';
const OK_LENGTH = (length: number): string => `${OK}content-length: ${length}\r\n\r\n`;
const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
const KB64 = Buffer.alloc(64 * 1024, 'x');
const DELIVERED = null;

const options = {
  egress: DEVELOPMENT_EGRESS,
  userAgent: 'Posthorn/test',
  publicUrl: 'https://posthorn.test',
  ca: certificates.authority,
};

interface Row {
  readonly does: string;
  readonly how: Behaviour | Reply;
  readonly comesTo: ErrorClass | null;
  readonly status?: number | null;
  readonly truncated?: boolean;
  readonly endpoint?: Partial<Endpoint>;
  /** True if the receiver ends the exchange well before the deadline. */
  readonly early?: boolean;
}

const rows: Row[] = [
  {
    does: 'sends headers forever',
    how: flood(OK, (n) => `x-${n}: ${'a'.repeat(100)}\r\n`),
    comesTo: 'response_headers_too_large',
    early: true,
  },
  { does: 'drips headers', how: drip(OK, 'x-slow: 1\r\n'), comesTo: 'timeout' },
  { does: 'drips one endless header', how: drip(`${OK}x-slow: `, 'a', 1), comesTo: 'timeout' },
  {
    does: 'sends a status line without end',
    how: flood('HTTP/1.1 200 ', KB64),
    comesTo: 'response_headers_too_large',
    early: true,
  },
  { does: 'drips the body of a 200', how: drip(OK_LENGTH(1e9), 'a'), comesTo: DELIVERED, truncated: true },
  {
    does: 'drips the body of a 500',
    how: drip('HTTP/1.1 500 No\r\ncontent-length: 1000\r\n\r\n', 'a'),
    comesTo: 'http_5xx',
    status: 500,
    truncated: true,
  },
  {
    does: 'sends a body of gigabytes',
    how: flood(OK_LENGTH(4e9), KB64),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'sends chunks without end',
    how: flood(CHUNKED, Buffer.concat([Buffer.from('10000\r\n'), KB64, Buffer.from('\r\n')])),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'sends a body without length and without end',
    how: flood(`${OK}\r\n`, KB64),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'sends thousands of headers',
    how: raw(OK + Array.from({ length: 5000 }, (_, n) => `x-${n}: 1\r\n`).join('')),
    comesTo: 'response_headers_too_large',
    early: true,
  },
  {
    does: 'sends one giant header',
    how: raw(`${OK}x-giant: ${'a'.repeat(1024 * 1024)}\r\n\r\n`),
    comesTo: 'response_headers_too_large',
    early: true,
  },
  {
    does: 'answers with garbage',
    how: raw(Buffer.from([0, 1, 2, 255])),
    comesTo: 'response_invalid',
    early: true,
  },
  { does: 'is an SSH server', how: raw('SSH-2.0-OpenSSH_9.6\r\n'), comesTo: 'response_invalid', early: true },
  {
    does: 'sends HTML without a head',
    how: raw('<html>hello</html>'),
    comesTo: 'response_invalid',
    early: true,
  },
  {
    does: 'sends a NUL inside a header',
    how: raw(`${OK}x-a: b\0c\r\n\r\n`),
    comesTo: 'response_invalid',
    early: true,
  },
  {
    does: 'sends two lengths that differ',
    how: raw(`${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab`),
    comesTo: 'response_invalid',
    early: true,
  },
  {
    does: 'sends a length and chunks',
    how: raw(`${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`),
    comesTo: 'response_invalid',
    early: true,
  },
  {
    does: 'sends a negative length',
    how: raw(`${OK}content-length: -1\r\n\r\n`),
    comesTo: 'response_invalid',
    early: true,
  },
  { does: 'closes without an answer', how: rawThenClose(''), comesTo: 'connection_reset', early: true },
  {
    does: 'closes within the headers',
    how: rawThenClose(`${OK}x-a: `),
    comesTo: 'connection_reset',
    early: true,
  },
  { does: 'resets without an answer', how: reset, comesTo: 'connection_reset', early: true },
  {
    does: 'resets within the headers',
    how: rawThenReset(`${OK}x-a: `),
    comesTo: 'connection_reset',
    early: true,
  },
  {
    does: 'resets within the body of a 200',
    how: rawThenReset(`${OK_LENGTH(100)}abc`),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'resets within the body of a 503',
    how: rawThenReset('HTTP/1.1 503 No\r\ncontent-length: 100\r\n\r\nabc'),
    comesTo: 'http_5xx',
    status: 503,
    truncated: true,
    early: true,
  },
  {
    does: 'closes before the announced length',
    how: rawThenClose(`${OK_LENGTH(100)}abc`),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'sends an invalid chunk size',
    how: raw(`${CHUNKED}zz\r\nabc`),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'sends a chunk extension without end',
    how: flood(`${CHUNKED}1;`, KB64),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  {
    does: 'sends trailers without end',
    how: flood(`${CHUNKED}0\r\n`, (n) => `x-${n}: ${'a'.repeat(100)}\r\n`),
    comesTo: DELIVERED,
    truncated: true,
    early: true,
  },
  { does: 'hangs', how: raw(''), comesTo: 'timeout' },
  {
    does: 'sends informational responses forever',
    how: flood('', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'),
    comesTo: 'http_1xx',
    early: true,
  },
  {
    does: 'sends one informational response, and hangs',
    how: raw('HTTP/1.1 102 Processing\r\n\r\n'),
    comesTo: 'timeout',
  },
  {
    does: 'sends 100 Continue',
    how: raw('HTTP/1.1 100 Continue\r\n\r\n'),
    comesTo: 'http_1xx',
    early: true,
  },
  {
    does: 'switches protocols without being asked',
    how: raw('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'),
    comesTo: 'http_1xx',
    early: true,
  },
  {
    does: 'answers with status 999',
    how: rawThenClose('HTTP/1.1 999 X\r\n\r\n'),
    comesTo: 'http_5xx',
    status: 999,
    early: true,
  },
  ...['HTTP/1.1 000 X', 'HTTP/1.1 099 X', 'HTTP/2.0 200 OK', 'HTTP/0.9 200 OK', 'RTSP/1.0 200 OK'].map(
    (line) => ({
      does: `answers with ${line}`,
      how: rawThenClose(`${line}\r\ncontent-length: 0\r\n\r\n`),
      comesTo: 'response_invalid' as const,
      early: true,
    }),
  ),
  {
    does: 'answers with HTTP/2.0 after an informational response',
    how: rawThenClose('HTTP/1.1 103 Hints\r\n\r\nHTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n'),
    comesTo: 'response_invalid',
    early: true,
  },
  {
    does: 'answers properly after an informational response',
    how: rawThenClose('HTTP/1.1 103 Hints\r\n\r\nHTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n'),
    comesTo: DELIVERED,
    early: true,
  },
  {
    does: 'answers properly, byte by byte',
    how: drip('', `${OK_LENGTH(0)}`, 1),
    comesTo: DELIVERED,
    early: true,
  },
  { does: 'redirects', how: redirect('/elsewhere'), comesTo: 'http_3xx', status: 307, early: true },
  {
    does: 'redirects in a loop',
    how: redirect('/'),
    comesTo: 'redirect_failed',
    status: 307,
    endpoint: { followRedirects: 3 },
    early: true,
  },
  {
    does: 'redirects to a metadata service',
    how: redirect('http://169.254.169.254/latest/meta-data/'),
    comesTo: 'egress_forbidden',
    status: 307,
    endpoint: { followRedirects: 3 },
    early: true,
  },
  {
    does: 'redirects to a private host over https',
    how: redirect('https://10.0.0.1/'),
    comesTo: 'egress_forbidden',
    status: 307,
    endpoint: { followRedirects: 3 },
    early: true,
  },
  {
    does: 'redirects to a file',
    how: redirect('file:///etc/passwd'),
    comesTo: 'egress_forbidden',
    status: 307,
    endpoint: { followRedirects: 3 },
    early: true,
  },
  {
    does: 'redirects with a status that would lose the body',
    how: redirect('/elsewhere', 302),
    comesTo: 'redirect_failed',
    status: 302,
    endpoint: { followRedirects: 3 },
    early: true,
  },
  {
    does: 'redirects without a location',
    how: { status: 308 },
    comesTo: 'redirect_failed',
    status: 308,
    endpoint: { followRedirects: 3 },
    early: true,
  },
  {
    does: 'redirects with a body of gigabytes',
    how: flood(
      'HTTP/1.1 307 Go\r\nlocation: http://169.254.169.254/\r\ncontent-length: 4000000000\r\n\r\n',
      KB64,
    ),
    comesTo: 'egress_forbidden',
    status: 307,
    endpoint: { followRedirects: 1 },
    early: true,
  },
];

async function judge(row: Row, { expect }: TestContext): Promise<void> {
  const receiver = await startReceiver();
  const deliverer = createDeliverer(options);
  let written = 0;
  receiver.answer(async (request, wire) => {
    void wire.closed.then(() => {
      written += wire.socket.bytesWritten;
    });
    return typeof row.how === 'function' ? row.how(request, wire) : row.how;
  });
  const outcome = await attempt(
    deliverer,
    anEndpoint(receiver.url, { timeoutMs: row.early ? AMPLE : DEADLINE, ...row.endpoint }),
  );

  expect(outcome.error?.class ?? null).toBe(row.comesTo);
  const status = row.status === undefined ? (row.comesTo === DELIVERED ? 200 : null) : row.status;
  expect(outcome.statusCode).toBe(status);
  expect(outcome.responseTruncated).toBe(row.truncated ?? false);
  expect(outcome.responseBody?.length ?? 0).toBeLessThanOrEqual(CAP);
  if (row.early) expect(outcome.durationMs).toBeLessThan(AMPLE / 2);
  else expect(outcome.durationMs).toBeGreaterThanOrEqual(DEADLINE - 2);
  if (!row.early) expect(outcome.durationMs).toBeLessThan(AMPLE);
  // A usable connection may stay open; any other is closed immediately, not when the deliverer is closed.
  if (row.truncated || status === null) await receiver.waitForNoSockets();
  await deliverer.close();
  await receiver.waitForNoSockets();
  // Only what fits into the buffers was read, not everything that the receiver tried to send.
  expect(written).toBeLessThan(16 * 1024 * 1024);
  await receiver.close();
}

describe.concurrent('a receiver that', () => {
  it.for(rows)('$does: $comesTo', judge);
});

describe.concurrent('a response body that', () => {
  it('is a gzip bomb is stored without decompression', async ({ expect }) => {
    const receiver = await startReceiver();
    const deliverer = createDeliverer(options);
    const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024));
    receiver.answer({ headers: { 'content-encoding': 'gzip' }, body: bomb });
    const outcome = await attempt(deliverer, anEndpoint(receiver.url));
    expect(receiver.requests[0]?.headers['accept-encoding']).toBeUndefined();
    expect(outcome.error).toBeNull();
    expect(outcome.responseBody).toEqual(bomb.subarray(0, CAP));
    await deliverer.close();
    await receiver.close();
  });

  it.for([
    [CAP - 1, CAP - 1, false],
    [CAP, CAP, false],
    [CAP + 1, CAP, true],
  ] as const)('has %i bytes is stored with %i', async ([length, stored, truncated], { expect }) => {
    const receiver = await startReceiver();
    const deliverer = createDeliverer(options);
    receiver.answer({ body: Buffer.alloc(length, 'x') });
    const outcome = await attempt(deliverer, anEndpoint(receiver.url));
    expect(outcome.responseBody?.length).toBe(stored);
    expect(outcome.responseTruncated).toBe(truncated);
    await deliverer.close();
    await receiver.close();
  });

  it('is followed by a second, forged response does not answer the next attempt', async ({ expect }) => {
    const receiver = await startReceiver();
    const deliverer = createDeliverer(options);
    const forged = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged';
    receiver.answer(raw(`${OK_LENGTH(2)}ok${forged}`));
    const endpoint = anEndpoint(receiver.url);
    const first = await attempt(deliverer, endpoint);
    receiver.answer({ status: 500 });
    const second = await attempt(deliverer, endpoint);
    expect(first.responseBody?.toString()).toBe('ok');
    expect(second.statusCode).toBe(500);
    await deliverer.close();
    await receiver.close();
  });

  it('comes before the request was read counts as the answer', async ({ expect }) => {
    const deliverer = createDeliverer(options);
    const hasty = await listen((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.write('HTTP/1.1 413 Too big\r\ncontent-length: 0\r\n\r\n'));
    });
    const event = anEvent({ data: Buffer.from(JSON.stringify('x'.repeat(256 * 1024))) });
    const outcome = await attempt(deliverer, anEndpoint(hasty.url), { event });
    expect(outcome.statusCode).toBe(413);
    await deliverer.close();
    await hasty.close();
  });
});
