import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { StreamClient } from './stream-client.ts';

const FILTER = { tenant: null, endpointId: null, type: null, outcome: null };
const BUFFER_BYTES = 64 * 1024;
const TEXT = `event: attempt\ndata: ${'x'.repeat(20_000)}\n\n`;

/** Both ends of a real connection. The client does not read yet. */
async function connect(): Promise<{ near: ServerResponse; far: IncomingMessage }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const clientRequest = request({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    agent: false,
  });
  clientRequest.on('error', () => {});
  clientRequest.end();
  const [, near] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  near.on('error', () => {});
  near.writeHead(200);
  near.write(': hello\n\n');
  const [far] = (await once(clientRequest, 'response')) as [IncomingMessage];
  far.on('error', () => {});
  return { near, far };
}

test('messages that a client does not read in time are dropped, and the client is told how many', async () => {
  const { near, far } = await connect();
  const client = new StreamClient(near, FILTER, BUFFER_BYTES);
  let sent = 0;
  // More than the buffers of the operating system hold.
  for (; sent < 2000; sent += 2) {
    client.show(TEXT + TEXT, 2);
    expect(near.writableLength).toBeLessThanOrEqual(BUFFER_BYTES + 2 * TEXT.length + 1024);
    if (sent % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  let text = '';
  far.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await expect.poll(() => near.writableLength).toBe(0);
  client.show('event: attempt\ndata: last\n\n', 1);
  await expect.poll(() => text.endsWith('data: last\n\n')).toBe(true);
  const reported = [...text.matchAll(/event: dropped\ndata: {"count":(\d+)}/g)].map(([, count]) =>
    Number(count),
  );
  const dropped = reported.reduce((sum, count) => sum + count, 0);
  expect(dropped).toBeGreaterThan(0);
  expect(text.split('event: attempt').length - 1).toBe(sent - dropped + 1);
});

test('a client that never reads is disconnected after some heartbeats, and does not delay a stop', async () => {
  for (const end of ['heartbeats', 'stop']) {
    const { near } = await connect();
    const client = new StreamClient(near, FILTER, BUFFER_BYTES);
    for (let i = 0; i < 1000; i += 1) client.show(TEXT, 1);
    const closed = once(near, 'close');
    if (end === 'stop') client.end();
    else for (let i = 0; i < 4; i += 1) client.heartbeat();
    await closed;
  }
});
