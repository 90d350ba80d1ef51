import type { Socket } from 'node:net';

/**
 * Resets a connection, so that the other side sees ECONNRESET. A connection that is already ending is destroyed
 * instead: after `end()`, `resetAndDestroy()` fails with EINVAL and leaks the connection.
 */
export function resetConnection(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
