/**
 * Answers the probes of an orchestrator while `serve` waits for the database: the process is alive (`/healthz` is 200)
 * and not ready (`/readyz` is 503). Without it, Kubernetes would restart pods because their database is unavailable.
 *
 * The API takes the port over while it stays open, so that no client is refused in between: a single process takes over
 * the listening socket, and the children of `--processes` share it with the child that answers probes (waiting-child.ts).
 */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { Problem } from '../domain/problem.ts';
import type { Running } from './run-until-stopped.ts';

/** If the start takes longer than this, for example because of a long migration, this server answers probes meanwhile. */
const SLOW_START_MS = 10_000;
/** The limit of connections. Probes need few. */
const MAX_CONNECTIONS = 50;
const RETRY_AFTER_SECONDS = 2;
const DETAIL =
  'Starting: the database cannot be reached, the migrations are still running, or the endpoints are being read.';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Calls `onLost` if the server ends by itself. */
type Listen<T> = (address: Address, onLost: () => void) => Promise<T>;

/** Opens and closes a server that answers probes. */
export class WaitingServer<T> implements Running {
  readonly name = 'answers to probes';
  readonly #address: Address;
  readonly #listen: Listen<T>;
  readonly #close: (server: T) => Promise<void>;
  #opening: Promise<T> | null = null;
  #slowStart: NodeJS.Timeout | undefined;

  constructor({ host, port }: Address, listen: Listen<T>, close: (server: T) => Promise<void>) {
    this.#address = { host, port };
    this.#listen = listen;
    this.#close = close;
  }

  /** Opens it later, if the start takes long. */
  openIfSlow(): void {
    // If the port is in use, the start itself reports it.
    this.#slowStart = setTimeout(() => void this.open().catch(() => {}), SLOW_START_MS).unref();
  }

  /** Listens, unless it does already. Does nothing if the port is chosen by the system: nobody could know it. */
  async open(): Promise<void> {
    clearTimeout(this.#slowStart);
    if (this.#address.port === 0) return;
    this.#opening ??= this.#listen(this.#address, () => {
      this.#opening = null;
    });
    try {
      await this.#opening;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }

  /** Returns the server to the caller, who listens on its socket from now on. Null if it is not open. */
  async release(): Promise<T | null> {
    clearTimeout(this.#slowStart);
    const server = await this.#opening?.catch(() => null);
    this.#opening = null;
    return server ?? null;
  }

  /** Stops listening. It can be opened again. */
  async close(): Promise<void> {
    const server = await this.release();
    if (server !== null) await this.#close(server);
  }

  stop(): Promise<void> {
    return this.close();
  }
}

export async function listenForProbes(address: Address): Promise<Server> {
  const server = createServer({ keepAlive: false }, ({ url = '/' }, response) =>
    answer(url.split('?')[0]!, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  server.listen(address);
  await once(server, 'listening');
  return server;
}

export async function closeAtOnce(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

function answer(path: string, response: ServerResponse): void {
  if (path === '/healthz') return send(response, 200, { status: 'ok' });
  response.setHeader('retry-after', RETRY_AFTER_SECONDS);
  if (path === '/readyz') return send(response, 503, { status: 'not_ready', detail: DETAIL });
  const problem = new Problem('unavailable', DETAIL);
  send(response, problem.status, problem.toJSON(), 'application/problem+json');
}

function send(response: ServerResponse, status: number, body: object, type = 'application/json'): void {
  response
    .writeHead(status, {
      'content-type': `${type}; charset=utf-8`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      connection: 'close',
    })
    .end(JSON.stringify(body));
}
