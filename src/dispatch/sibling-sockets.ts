/**
 * Hands deliveries over to the other processes of this node (`serve --processes N`), payload included, so that the owner
 * sends them without reading the store. Between nodes, and whenever a sibling cannot be reached, a notification wakes the
 * owner, which reads the store.
 *
 * Each process listens on a socket in a directory that only these processes may enter, and connects to all siblings with
 * a lower number. So two processes share one connection, on which both announce their shards.
 *
 *   searching ──▶ connected ──▶ shards announced ──▶ deliveries for them are handed over
 *       ▲             │ silent, or its buffer is full: notify instead
 *       └─────────────┘ connection closed: search again after a while
 *
 * Deliveries that are lost with a connection are in the store: a sweep finds them, or the next owner of the shards.
 */
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import type { Clock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { NewDelivery } from '../ports/accept-log.ts';
import type { Commit, CommittedDelivery, HandOver } from '../ports/hand-over.ts';
import { encodeCommitted, encodeShards, FrameReader } from './sibling-frames.ts';

export interface SiblingSocketsOptions {
  readonly directory: string;
  /** The number of this process. A process that is started later has a higher one. */
  readonly number: number;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

const SEARCH_INTERVAL_MS = 500;
/** A sibling that was silent for longer may be stopped, and other processes may own its shards. */
const MAX_SILENCE_MS = 2_000;
/** Unsent bytes per connection: a stopped sibling must not fill our memory. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const SOCKET_NAME = /^(\d+)\.sock$/;

interface Sibling {
  readonly socket: net.Socket;
  shards: Set<number>;
  lastHeardAt: number;
  /** Deliveries of one commit, written as one frame in the next microtask. */
  outgoing: { readonly commit: Commit; readonly deliveries: CommittedDelivery[] } | null;
}

export class SiblingSockets implements HandOver {
  readonly #options: SiblingSocketsOptions;
  readonly #siblings = new Set<Sibling>();
  /** Numbers of the processes that this one is connected or connecting to. */
  readonly #connectedTo = new Set<number>();
  readonly #refusedBefore = new Set<number>();
  readonly #server: net.Server;
  #ownedShards: () => readonly number[] = () => [];
  #onReceived: (deliveries: readonly CommittedDelivery[], commit: Commit) => void = () => {};
  #cancelSearch: (() => void) | null = null;
  #stopped = false;

  constructor(options: SiblingSocketsOptions) {
    this.#options = options;
    this.#server = net.createServer((socket) => this.#onConnected(socket, () => {}));
    this.#server.on('error', (error) => options.onProblem('listen for sibling processes', error));
  }

  /** If the socket cannot be created (its path may be too long), reports that and hands nothing over. */
  async start(ownedShards: () => readonly number[]): Promise<void> {
    this.#ownedShards = ownedShards;
    // Exclusive: otherwise the cluster module would share the socket among all children.
    this.#server.listen({ path: this.#socketOf(this.#options.number), exclusive: true });
    const isListening = await once(this.#server, 'listening').then(
      () => true,
      () => false,
    );
    if (isListening) await this.#findSiblings();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelSearch?.();
    this.#server.close();
    for (const { socket } of this.#siblings) socket.end();
  }

  onReceived(handler: (deliveries: readonly CommittedDelivery[], commit: Commit) => void): void {
    this.#onReceived = handler;
  }

  offer(delivery: NewDelivery, event: EventContent, commit: Commit): boolean {
    const shard = shardOf(delivery.endpointId);
    for (const sibling of this.#siblings) {
      if (!sibling.shards.has(shard)) continue;
      if (this.#now() - sibling.lastHeardAt > MAX_SILENCE_MS) return false;
      if (sibling.socket.writableLength > MAX_BUFFERED_BYTES) return false;
      if (sibling.outgoing?.commit !== commit) {
        this.#flush(sibling);
        sibling.outgoing = { commit, deliveries: [] };
        queueMicrotask(() => this.#flush(sibling));
      }
      sibling.outgoing.deliveries.push({ delivery, event });
      return true;
    }
    return false;
  }

  announceShards(): void {
    const message = encodeShards(this.#ownedShards());
    for (const { socket } of this.#siblings) socket.write(message);
  }

  #flush(sibling: Sibling): void {
    const { outgoing } = sibling;
    if (outgoing === null) return;
    sibling.outgoing = null;
    sibling.socket.write(encodeCommitted(outgoing.deliveries, outgoing.commit));
  }

  #socketOf(number: number): string {
    return path.join(this.#options.directory, `${number}.sock`);
  }

  async #findSiblings(): Promise<void> {
    // Even if nothing changed, an announcement shows that this process is alive. It comes first: readdir may be slow.
    this.announceShards();
    const names = await readdir(this.#options.directory).catch((error) => {
      this.#options.onProblem('find sibling processes', error);
      return [];
    });
    if (this.#stopped) return;
    for (const name of names) {
      const number = Number(SOCKET_NAME.exec(name)?.[1] ?? Number.NaN);
      if (number < this.#options.number && !this.#connectedTo.has(number)) this.#connect(number);
    }
    this.#cancelSearch = this.#options.clock.after(SEARCH_INTERVAL_MS, () => void this.#findSiblings());
  }

  #connect(number: number): void {
    this.#connectedTo.add(number);
    const socket = net.connect(this.#socketOf(number));
    socket.once('connect', () => this.#onConnected(socket, () => this.#connectedTo.delete(number)));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      this.#connectedTo.delete(number);
      if (error.code !== 'ECONNREFUSED') return;
      // The process died and left its socket file behind, or it is about to listen. Remove the file only the second
      // time.
      if (this.#refusedBefore.has(number)) void rm(this.#socketOf(number), { force: true });
      this.#refusedBefore.add(number);
    });
  }

  #onConnected(socket: net.Socket, onClosed: () => void): void {
    const sibling: Sibling = { socket, shards: new Set(), lastHeardAt: this.#now(), outgoing: null };
    const reader = new FrameReader();
    this.#siblings.add(sibling);
    socket.removeAllListeners('error');
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#siblings.delete(sibling);
      onClosed();
    });
    socket.on('data', (piece) => {
      try {
        for (const message of reader.read(piece)) {
          if (message.kind === 'shards') this.#updateShards(sibling, message.shards);
          else this.#onReceived(message.deliveries, message.commit);
        }
      } catch (error) {
        this.#options.onProblem('read a message of a sibling process', error);
        socket.destroy();
      }
    });
    socket.write(encodeShards(this.#ownedShards()));
  }

  /** The latest announcement of a shard wins: a previous owner may be unable to tell that it has lost the shard. */
  #updateShards(sibling: Sibling, shards: readonly number[]): void {
    const added = shards.filter((shard) => !sibling.shards.has(shard));
    for (const other of this.#siblings) for (const shard of added) other.shards.delete(shard);
    sibling.shards = new Set(shards);
    sibling.lastHeardAt = this.#now();
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
