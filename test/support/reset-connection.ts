import type { Socket } from 'node:net';

/**
 * Breaks a connection off, so that the other side sees ECONNRESET. One that is ending already is destroyed without that:
 * after `end()`, `resetAndDestroy()` fails with EINVAL and leaves the connection open for ever, without its socket.
 */
export function resetConnection(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
