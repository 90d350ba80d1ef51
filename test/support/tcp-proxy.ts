/** A proxy between a program and its database that can be cut: connections close and new ones are refused. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  /** The same address, through the proxy. */
  readonly url: string;
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Closes the connection at the next request (it never arrives) or the next answer (it is lost). */
  cutAt(moment: 'request' | 'answer'): void;
}

/** The address of the server: a host and port, or PostgreSQL's socket if the host is a directory. */
function placeOf({ hostname, port }: URL): { path: string } | { host: string; port: number } {
  const host = decodeURIComponent(hostname);
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port: Number(port) };
}

export async function startTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const target = placeOf(new URL(targetUrl));
  const sockets = new Set<Socket>();
  let cutNext: 'request' | 'answer' | null = null;
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    const far = connect(target);
    keep(near);
    keep(far);
    const forward = (from: Socket, to: Socket, moment: 'request' | 'answer'): void => {
      from.on('data', (piece) => {
        if (cutNext !== moment) return void to.write(piece);
        cutNext = null;
        near.destroy();
      });
      from.once('end', () => to.end());
    };
    forward(near, far, 'request');
    forward(far, near, 'answer');
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
  });
  const listen = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const url = new URL(targetUrl);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return {
    url: url.href,
    async cut() {
      if (!server.listening) return;
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
    cutAt(moment) {
      cutNext = moment;
    },
    async restore() {
      if (!server.listening) await listen(port);
    },
  };
}
