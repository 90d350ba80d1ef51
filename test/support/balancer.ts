/** A small load balancer: it sends new connections in turn to the nodes whose `/readyz` is 200. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Balancer {
  readonly port: number;
  readonly url: string;
  /** Ports of the nodes that get new connections now. */
  readonly ready: readonly number[];
  close(): Promise<void>;
}

const CHECK_MS = 100;

export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  let ready: number[] = [];
  let turn = 0;
  const check = async (): Promise<void> => {
    const states = await Promise.all(ports.map(isReady));
    ready = ports.filter((_, index) => states[index]);
  };
  await check();
  let checking = Promise.resolve();
  const timer = setInterval(() => {
    checking = checking.then(check);
  }, CHECK_MS);
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    turn += 1;
    const port = ready[turn % ready.length];
    if (port === undefined) {
      near.resetAndDestroy();
      return;
    }
    const far = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      // Forward a reset as a reset.
      socket.on('error', () => other.resetAndDestroy());
      socket.once('close', () => sockets.delete(socket));
      socket.pipe(other);
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    get ready() {
      return ready;
    },
    async close() {
      clearInterval(timer);
      await checking;
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

async function isReady(port: number): Promise<boolean> {
  const headers = { connection: 'close' };
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { headers }).catch(() => null);
  await answer?.text().catch(() => {});
  return answer?.status === 200;
}
