/** Raw HTTP, for requests that no client library would send. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RawExchange {
  /** The answers in order. */
  readonly answers: readonly RawAnswer[];
  /** Whether the server closed the connection. */
  readonly closed: boolean;
  readonly ms: number;
}

export interface RawOptions {
  /** How many answers to wait for. Default: 1. */
  readonly answers?: number;
  readonly timeoutMs?: number;
  /** Wait until the server closes the connection. */
  readonly untilClosed?: boolean;
}

/** Sends these bytes, or what the function writes, and collects the answers. */
export async function exchange(
  url: string,
  send: string | Buffer | ((socket: Socket) => Promise<void>),
  { answers: wanted = 1, timeoutMs = 5000, untilClosed = false }: RawOptions = {},
): Promise<RawExchange> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const begin = performance.now();
  let received = Buffer.alloc(0);
  let closed = false;
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    closed = true;
  });
  const sending = typeof send === 'function' ? send(socket) : void socket.write(send);
  try {
    while (performance.now() - begin < timeoutMs) {
      if (closed || (!untilClosed && parse(received).length >= wanted)) break;
      await sleep(5);
    }
    return { answers: parse(received), closed, ms: performance.now() - begin };
  } finally {
    socket.destroy();
    await sending;
  }
}

/** Complete answers only, framed by content-length. */
function parse(received: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let at = 0;
  for (;;) {
    const end = received.indexOf('\r\n\r\n', at);
    if (end < 0) return answers;
    const [statusLine, ...lines] = received.toString('latin1', at, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    );
    const bodyEnd = end + 4 + Number(headers['content-length'] ?? 0);
    if (received.length < bodyEnd) return answers;
    answers.push({
      status: Number(statusLine!.split(' ')[1]),
      headers,
      body: received.toString('utf8', end + 4, bodyEnd),
    });
    at = bodyEnd;
  }
}
