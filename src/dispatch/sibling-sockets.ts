/**
 * Connects the processes of one node (`serve --processes N`). Each process listens on a socket in a directory that only
 * these processes may enter, and connects to all siblings with a lower number. So two processes share one connection.
 */
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import type { Clock } from '../domain/clock.ts';
import type { PeerTransport } from './peer-links.ts';

export interface SiblingSocketsOptions {
  readonly directory: string;
  /** The number of this process. A process that is started later has a higher one. */
  readonly number: number;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

const SEARCH_INTERVAL_MS = 500;
/** After this time all siblings listen that were started together with this one. Later ones connect by themselves. */
const SEARCH_FOR_MS = 60_000;
const SLOW_SEARCH_INTERVAL_MS = 10_000;
const SOCKET_NAME = /^(\d+)\.sock$/;

export class SiblingSockets implements PeerTransport {
  readonly isWithinNode = true;
  readonly #options: SiblingSocketsOptions;
  /** Numbers of the processes that this one is connected or connecting to. */
  readonly #connectedTo = new Set<number>();
  readonly #refusedBefore = new Set<number>();
  readonly #server: net.Server;
  #onConnected: (socket: net.Socket) => void = () => {};
  #cancelSearch: (() => void) | null = null;
  /** When the current search for siblings began, on the monotonic clock: at the start, or when a connection was lost. */
  #searchStartedAt = 0;
  #isStopped = false;

  constructor(options: SiblingSocketsOptions) {
    this.#options = options;
    this.#server = net.createServer((socket) => this.#onConnected(socket));
    this.#server.on('error', (error) => options.onProblem('listen for sibling processes', error));
  }

  /** If the socket cannot be created (its path may be too long), reports that and connects to nobody. */
  async start(onConnected: (socket: net.Socket) => void): Promise<void> {
    this.#onConnected = onConnected;
    // Exclusive: otherwise the cluster module would share the socket among all children.
    this.#server.listen({ path: this.#socketOf(this.#options.number), exclusive: true });
    const isListening = await once(this.#server, 'listening').then(
      () => true,
      () => false,
    );
    this.#searchStartedAt = this.#options.clock.monotonic();
    if (isListening) await this.#findSiblings();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelSearch?.();
    this.#server.close();
  }

  #socketOf(number: number): string {
    return path.join(this.#options.directory, `${number}.sock`);
  }

  async #findSiblings(): Promise<void> {
    const names = await readdir(this.#options.directory).catch((error) => {
      this.#options.onProblem('find sibling processes', error);
      return [];
    });
    if (this.#isStopped) return;
    for (const name of names) {
      const number = Number(SOCKET_NAME.exec(name)?.[1] ?? Number.NaN);
      if (number < this.#options.number && !this.#connectedTo.has(number)) this.#connect(number);
    }
    this.#searchLater();
  }

  #searchLater(): void {
    const { clock } = this.#options;
    const isNew = clock.monotonic() - this.#searchStartedAt < SEARCH_FOR_MS;
    this.#cancelSearch?.();
    this.#cancelSearch = clock.after(
      isNew ? SEARCH_INTERVAL_MS : SLOW_SEARCH_INTERVAL_MS,
      () => void this.#findSiblings(),
    );
  }

  #onClosed(number: number): void {
    this.#connectedTo.delete(number);
    if (this.#isStopped) return;
    this.#searchStartedAt = this.#options.clock.monotonic();
    this.#searchLater();
  }

  #connect(number: number): void {
    this.#connectedTo.add(number);
    const socket = net.connect(this.#socketOf(number));
    socket.once('close', () => this.#onClosed(number));
    const onRefused = (error: NodeJS.ErrnoException): void => {
      if (error.code !== 'ECONNREFUSED') return;
      // The process died and left its socket file behind, or it is about to listen. Remove the file only the second
      // time.
      if (this.#refusedBefore.has(number)) void rm(this.#socketOf(number), { force: true });
      this.#refusedBefore.add(number);
    };
    socket.once('error', onRefused);
    socket.once('connect', () => {
      socket.off('error', onRefused);
      this.#onConnected(socket);
    });
  }
}
