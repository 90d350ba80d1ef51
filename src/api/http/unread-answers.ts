/**
 * Closes connections whose clients do not read the answer, which would otherwise keep its memory and the socket for as long as the
 * client likes. It looks at connections once a second instead of starting a timer for every answer: most are read at once.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../domain/clock.ts';

export interface UnreadAnswersOptions {
  readonly clock: Clock;
  /** How long an answer may wait to be read. Large ones may wait longer. */
  readonly timeoutMs: number;
  /** Maximum total of unread bytes of all connections. */
  readonly maxBytes: number;
  /** Called with the number of connections that were closed. */
  readonly onClosed: (count: number) => void;
}

interface Waiting {
  readonly socket: Socket;
  /** How many bytes the client had taken when the wait began. A live tail goes on as long as this grows. */
  readonly sent: number;
  readonly since: number;
}

const CHECK_MS = 1_000;
/** The timeout grows by one second per this many unread bytes. */
const MIN_BYTES_PER_SECOND = 64 * 1024;

export function limitUnreadAnswers(server: Server, options: UnreadAnswersOptions): void {
  const { clock, timeoutMs, maxBytes, onClosed } = options;
  const open = new Set<Socket>();
  let waiting = new Map<Socket, Waiting>();
  let cancel: (() => void) | null = null;

  const isLate = ({ socket, since }: Waiting, now: number): boolean =>
    now - since > timeoutMs + (socket.writableLength / MIN_BYTES_PER_SECOND) * 1000;

  /** The connections to close: those that are late, and the largest if all together take too much memory. */
  function findExcess(now: number): Waiting[] {
    const late = [...waiting.values()].filter((each) => isLate(each, now));
    const others = [...waiting.values()].filter((each) => !isLate(each, now));
    let bytes = others.reduce((sum, { socket }) => sum + socket.writableLength, 0);
    if (bytes <= maxBytes) return late;
    others.sort((a, b) => b.socket.writableLength - a.socket.writableLength);
    for (const each of others) {
      if (bytes <= maxBytes) break;
      // This check sees the answer for the first time: the client may be reading it now.
      if (each.since === now) continue;
      bytes -= each.socket.writableLength;
      late.push(each);
    }
    return late;
  }

  function check(): void {
    const now = clock.monotonic();
    const before = waiting;
    waiting = new Map();
    for (const socket of open) {
      if (socket.writableLength === 0) continue;
      const known = before.get(socket);
      const sent = socket.bytesWritten - socket.writableLength;
      waiting.set(socket, known?.sent === sent ? known : { socket, sent, since: now });
    }
    const excess = findExcess(now);
    for (const { socket } of excess) {
      socket.destroy();
      open.delete(socket);
    }
    if (excess.length > 0) onClosed(excess.length);
    cancel = open.size === 0 ? null : clock.after(CHECK_MS, check);
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      waiting.delete(socket);
    });
    cancel ??= clock.after(CHECK_MS, check);
  });
  server.on('close', () => cancel?.());
}
