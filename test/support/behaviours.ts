/** Ways for a receiver to misbehave: `receiver.answer(reset)`, `receiver.answer(raw('nonsense'))`. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Behaviour, Reply } from './receiver.ts';

/** Resets the connection without a response. */
export const reset: Behaviour = (_request, { socket }) => {
  socket.resetAndDestroy();
  return undefined;
};

/** Writes these bytes instead of a response, and then nothing more. */
export const raw =
  (bytes: string | Buffer): Behaviour =>
  (_request, { socket }) => {
    socket.write(bytes);
    return undefined;
  };

/** Writes these bytes and closes the connection normally. */
export const rawThenClose =
  (bytes: string | Buffer): Behaviour =>
  (_request, { socket }) => {
    socket.end(bytes);
    return undefined;
  };

/** Writes these bytes, lets them arrive, and resets the connection. */
export const rawThenReset =
  (bytes: string | Buffer): Behaviour =>
  (_request, { socket }) => {
    socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), 20));
    return undefined;
  };

/** Writes `head`, and then one byte of `tail` after the other, over and over, slowly, forever. */
export const drip =
  (head: string, tail: string, everyMs = 10): Behaviour =>
  async (_request, { socket }) => {
    socket.write(head);
    for (let i = 0; !socket.destroyed; i += 1) {
      await sleep(everyMs);
      if (!socket.destroyed) socket.write(tail[i % tail.length]!);
    }
    return undefined;
  };

/** Writes `head`, and then `chunk` over and over, as fast as it is read, forever. */
export const flood =
  (head: string, chunk: string | Buffer | ((n: number) => string)): Behaviour =>
  async (_request, { socket, closed }) => {
    socket.write(head);
    for (let n = 0; !socket.destroyed; n += 1) {
      const more = socket.write(typeof chunk === 'function' ? chunk(n) : chunk);
      if (!more) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
    }
    return undefined;
  };

export const redirect = (location: string, status = 307): Reply => ({ status, headers: { location } });
