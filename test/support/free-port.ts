import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Systems give sockets that name no port one from 32768 on. A port below that stays free until the test uses it.
const FIRST_PORT = 10_000;
const END_OF_PORTS = 32_000;

/** Returns a port of 127.0.0.1 on which nobody listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, END_OF_PORTS);
    if (await canListen(port)) return port;
  }
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
