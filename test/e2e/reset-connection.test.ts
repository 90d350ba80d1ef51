import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { resetConnection } from '../support/reset-connection.ts';

const openTcpSockets = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;

test('a connection that is reset while it ends leaves no socket open', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const accepted = once(server, 'connection');
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  const [socket] = await accepted;
  socket.on('error', () => {});
  // The connection is reset while the server ends it.
  socket.end();
  resetConnection(socket);
  client.destroy();
  await eventually('both ends are closed', () => openTcpSockets() === 0, { timeoutMs: 3000 });
});
