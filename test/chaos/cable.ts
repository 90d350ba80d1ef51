/**
 * The network between one process and PostgreSQL, as a small TCP proxy in front of the server's Unix socket. It can be
 * pulled (connections break, new ones are refused) or silenced (nothing arrives any more, and neither side gets an
 * error).
 */
import { createServer, connect as open, type Server, type Socket } from 'node:net';
import { resetConnection } from '../support/reset-connection.ts';

export class Cable {
  readonly #socketPath: string;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #server: Server | null = null;
  #refusing = false;
  #silent = false;
  port = 0;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  async listen(): Promise<void> {
    const server = createServer((client) => this.#connect(client));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.port = (server.address() as { port: number }).port;
  }

  /** Breaks every connection. New ones are possible immediately. */
  cut(): void {
    for (const [client, server] of this.#pairs) {
      resetConnection(client);
      server.destroy();
    }
  }

  pull(): void {
    this.#refusing = true;
    this.cut();
  }

  /** Stops all data. New connections get no answer either. */
  silence(): void {
    this.#silent = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** Restores the cable. Data that was held back while it was silent arrives now, unless `cut` was called. */
  mend(): void {
    this.#refusing = false;
    this.#silent = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async close(): Promise<void> {
    this.pull();
    await new Promise<void>((resolve) => {
      if (this.#server === null) resolve();
      else this.#server.close(() => resolve());
    });
  }

  #connect(client: Socket): void {
    client.on('error', () => {});
    if (this.#refusing) {
      resetConnection(client);
      return;
    }
    client.setNoDelay(true);
    const server = open(this.#socketPath);
    server.on('error', () => client.destroy());
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    client.on('data', (chunk) => server.write(chunk));
    server.on('data', (chunk) => client.write(chunk));
    client.on('end', () => server.end());
    server.on('end', () => client.end());
    const onClosed = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    client.on('close', onClosed);
    server.on('close', onClosed);
    if (this.#silent) for (const socket of pair) socket.pause();
  }
}
