import { createServer, type Socket } from 'node:net';

/** A TCP server on loopback that tracks its open sockets. */
export async function listen(onConnection: (socket: Socket) => void): Promise<{
  url: string;
  noSockets(): Promise<void>;
  close(): Promise<void>;
}> {
  const server = createServer(onConnection);
  const sockets = new Set<{ destroy(): void }>();
  let emptied = (): void => {};
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) emptied();
    });
    // Read, or the end of the connection would not be noticed.
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    noSockets: () =>
      new Promise((resolve) => {
        if (sockets.size === 0) resolve();
        else emptied = resolve;
      }),
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
