/**
 * A real HTTP(S) receiver on loopback for tests. It records requests, answers as configured, and can misbehave.
 *
 *   const receiver = await startReceiver();
 *   receiver.answer({ status: 503 });
 *   const [request] = await receiver.waitFor(1);
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Header names as they were written, with their order and repeats. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts on the parts it knows
  json(): any;
  readonly at: number;
  /** The number of its connection, from 0. */
  readonly connection: number;
  /** 0 for the first request. */
  readonly index: number;
  /** The common name in the client's certificate. Null: it sent none. */
  readonly clientName: string | null;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
  readonly delayMs?: number;
}

export interface Wire {
  readonly socket: Socket;
  readonly response: ServerResponse;
  /** Resolves when the connection is closed, for behaviours that run until then. */
  readonly closed: Promise<void>;
}

/** Returns a reply, or writes to the connection itself and returns nothing. */
export type Behaviour = (
  request: RecordedRequest,
  wire: Wire,
) => Reply | undefined | Promise<Reply | undefined>;

export interface Receiver {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly RecordedRequest[];
  /** Sets the answer for all further requests. Default: 200 with an empty body. */
  answer(how: Reply | Behaviour): void;
  /** Resolves with all requests when there are this many, or when one matches. Rejects after the timeout. */
  waitFor(
    what: number | ((request: RecordedRequest) => boolean),
    timeoutMs?: number,
  ): Promise<RecordedRequest[]>;
  /** Records requests, but does not answer them until `release()`. */
  hang(): void;
  /** Answers the requests held by `hang()` and all further ones. */
  release(): void;
  /** Whether the request with this index waits for `release()`. */
  isHeld(index: number): boolean;
  openSockets(): number;
  /** Resolves when no connection is open. Rejects after the timeout. */
  waitForNoSockets(timeoutMs?: number): Promise<void>;
  /** The number of connections so far. */
  readonly connections: number;
  close(): Promise<void>;
}

export interface ReceiverOptions {
  readonly tls?: {
    readonly key: string | Buffer;
    readonly cert: string | Buffer;
    readonly ciphers?: string;
    readonly dhparam?: string;
    readonly maxVersion?: 'TLSv1.2';
  };
  /** Asks for a client certificate of this authority. */
  readonly clientAuthority?: string;
  /** Whether clients without a certificate are refused (default) or accepted with `clientName` null. */
  readonly withoutCertificate?: 'refuse' | 'accept';
  readonly port?: number;
  readonly host?: string;
  /** How the receiver is named in `url`. Default: its address. */
  readonly name?: string;
}

interface Waiter {
  check(): boolean;
  resolve(): void;
}

export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const requests: RecordedRequest[] = [];
  const sockets = new Map<Socket, number>();
  const waiters = new Set<Waiter>();
  let connections = 0;
  let behaviour: Behaviour = () => ({ status: 200 });
  let held = new Map<number, () => void>();
  let holding = false;

  const signal = (): void => {
    for (const waiter of waiters) {
      if (waiter.check()) {
        waiters.delete(waiter);
        waiter.resolve();
      }
    }
  };
  const until = (check: () => boolean, timeoutMs: number, what: string): Promise<void> =>
    new Promise((resolve, reject) => {
      if (check()) return resolve();
      const waiter: Waiter = {
        check,
        resolve: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        waiters.delete(waiter);
        reject(
          new Error(`The receiver waited ${timeoutMs} ms for ${what}; it has ${requests.length} requests.`),
        );
      }, timeoutMs);
      waiters.add(waiter);
    });

  const listener: RequestListener = (message, response) => {
    const chunks: Buffer[] = [];
    message.on('data', (chunk: Buffer) => chunks.push(chunk));
    message.on('error', () => {});
    response.on('error', () => {});
    message.on('end', () => {
      const request = record(
        message,
        Buffer.concat(chunks),
        requests.length,
        sockets.get(message.socket) ?? -1,
      );
      requests.push(request);
      void respond(request, message, response).catch(() => message.socket.destroy());
      signal();
    });
  };

  const respond = async (request: RecordedRequest, message: IncomingMessage, response: ServerResponse) => {
    const { socket } = message;
    const closed = closedOf(socket);
    if (holding) await new Promise<void>((resolve) => held.set(request.index, resolve));
    const reply = await behaviour(request, { socket, response, closed });
    if (reply === undefined) return;
    if (reply.delayMs !== undefined) await delayUnlessClosed(reply.delayMs, closed);
    if (socket.destroyed) return;
    response.writeHead(reply.status ?? 200, reply.headers as Record<string, string | string[]>);
    response.end(reply.body);
  };

  const server =
    options.tls === undefined
      ? createServer(listener)
      : createTlsServer({ ...options.tls, ...askingForCertificates(options) }, listener);
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.on('clientError', (_error, socket) => socket.destroy());
  const count = (socket: Socket): void => {
    sockets.set(socket, connections);
    connections += 1;
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      signal();
    });
  };
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', count);
  // Also track sockets that never finish their handshake, to close them.
  const raw = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    raw.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      raw.delete(socket);
      signal();
    });
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const scheme = options.tls === undefined ? 'http' : 'https';

  return {
    url: `${scheme}://${options.name ?? options.host ?? '127.0.0.1'}:${port}`,
    port,
    requests,
    answer(how) {
      behaviour = typeof how === 'function' ? how : () => how;
    },
    async waitFor(what, timeoutMs = 20_000) {
      const check = typeof what === 'number' ? () => requests.length >= what : () => requests.some(what);
      await until(check, timeoutMs, typeof what === 'number' ? `${what} requests` : 'a request that fits');
      return [...requests];
    },
    hang() {
      holding = true;
    },
    release() {
      holding = false;
      const waiting = held;
      held = new Map();
      for (const go of waiting.values()) go();
    },
    isHeld: (index) => held.has(index),
    openSockets: () => raw.size,
    waitForNoSockets: (timeoutMs = 20_000) => until(() => raw.size === 0, timeoutMs, 'its sockets to close'),
    get connections() {
      return connections;
    },
    async close() {
      for (const socket of raw) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function askingForCertificates({ clientAuthority, withoutCertificate }: ReceiverOptions) {
  if (clientAuthority === undefined) return {};
  return { requestCert: true, ca: clientAuthority, rejectUnauthorized: withoutCertificate !== 'accept' };
}

function clientName({ socket }: IncomingMessage): string | null {
  const subject = socket instanceof TLSSocket ? socket.getPeerCertificate().subject : undefined;
  return typeof subject?.CN === 'string' ? subject.CN : null;
}

function record(message: IncomingMessage, body: Buffer, index: number, connection: number): RecordedRequest {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers))
    headers[name] = Array.isArray(value) ? value.join(', ') : (value ?? '');
  return {
    method: message.method ?? '',
    path: message.url ?? '',
    headers,
    rawHeaders: message.rawHeaders,
    body,
    json: () => JSON.parse(body.toString()),
    at: Date.now(),
    connection,
    index,
    clientName: clientName(message),
  };
}

/** One promise per connection, shared by all its requests. */
const closings = new WeakMap<Socket, Promise<void>>();
function closedOf(socket: Socket): Promise<void> {
  let closing = closings.get(socket);
  if (closing === undefined) {
    closing = new Promise((resolve) => {
      if (socket.destroyed) resolve();
      else socket.once('close', () => resolve());
    });
    closings.set(socket, closing);
  }
  return closing;
}

/** Clears the timer when the connection closes. */
const delayUnlessClosed = (ms: number, closed: Promise<void>): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void closed.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
