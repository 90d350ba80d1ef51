/**
 * The processes of one node (`serve --processes N`) hand each other what they have just committed for a lane that
 * another of them owns, payload and all: it leaves as soon as from the process that accepted it, and nobody reads it
 * from the database. Between nodes, and whenever a sibling cannot be told, a NOTIFY wakes the owner, which reads.
 *
 * Each listens on a socket in a directory that only they may enter, and connects to those with a lower number than its
 * own: one connection for each two of them, on which both say which shards they work on.
 *
 *   searching ──▶ connected ──▶ told its shards ──▶ deliveries for them are handed over
 *       ▲             │ silent, or more waits in it than it takes: NOTIFY instead
 *       └─────────────┘ ended: look again after a while
 *
 * All of it is a hint. What is lost with a connection is in the database: a sweep finds it, or whoever takes the shards
 * of the one that died.
 */
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import type { Clock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { NewDelivery } from '../ports/accept-log.ts';
import type { Commit } from '../ports/hand-over.ts';
import { encodeCommitted, encodeOwns, FrameReader, type HandedDelivery } from './sibling-frames.ts';

export interface SiblingsOptions {
  readonly directory: string;
  /** Ours among them; one that is started later has a higher one. */
  readonly number: number;
  readonly clock: Clock;
  readonly ownedShards: () => readonly number[];
  readonly received: (deliveries: readonly HandedDelivery[], commit: Commit) => void;
  readonly problem: (what: string, error: unknown) => void;
}

const LOOK_AROUND_MS = 500;
/** One that has said nothing for so long is stopped, and its shards may be somebody else's by now. */
const SILENT_MS = 2_000;
/** So much may wait in a connection: a sibling that is stopped must not fill our memory. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const SOCKET_NAME = /^(\d+)\.sock$/;

interface Sibling {
  readonly socket: net.Socket;
  shards: Set<number>;
  heardAt: number;
  /** Of one commit, to be written when the present turn is over. */
  outgoing: { readonly commit: Commit; readonly deliveries: HandedDelivery[] } | null;
}

export class Siblings {
  readonly #options: SiblingsOptions;
  readonly #siblings = new Set<Sibling>();
  /** Whom we have connected to. */
  readonly #reached = new Set<number>();
  readonly #refused = new Set<number>();
  readonly #server: net.Server;
  #cancelLook: (() => void) | null = null;
  #stopped = false;

  constructor(options: SiblingsOptions) {
    this.#options = options;
    this.#server = net.createServer((socket) => this.#connected(socket, () => {}));
    this.#server.on('error', (error) => options.problem('hear from sibling processes', error));
  }

  /** Where no socket can be made (a path that is too long, say) it is reported, and everything goes by NOTIFY. */
  async start(): Promise<void> {
    // Exclusive: ours alone, not one that the parent of all children listens on for us.
    this.#server.listen({ path: this.#socketOf(this.#options.number), exclusive: true });
    const listens = await once(this.#server, 'listening').then(
      () => true,
      () => false,
    );
    if (listens) await this.#lookAround();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelLook?.();
    this.#server.close();
    for (const { socket } of this.#siblings) socket.end();
  }

  /** Returns false if no sibling that can be told works on its shard. */
  offer(delivery: NewDelivery, event: EventContent, commit: Commit): boolean {
    const shard = shardOf(delivery.endpointId);
    for (const sibling of this.#siblings) {
      if (!sibling.shards.has(shard)) continue;
      if (this.#now() - sibling.heardAt > SILENT_MS) return false;
      if (sibling.socket.writableLength > MAX_WAITING_BYTES) return false;
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

  /** Our shards have changed. */
  shardsChanged(): void {
    const message = encodeOwns(this.#options.ownedShards());
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

  async #lookAround(): Promise<void> {
    // Also when nothing has changed: that we say something is news. And first: a disk may be slow.
    this.shardsChanged();
    const names = await readdir(this.#options.directory).catch((error) => {
      this.#options.problem('look for sibling processes', error);
      return [];
    });
    if (this.#stopped) return;
    for (const name of names) {
      const number = Number(SOCKET_NAME.exec(name)?.[1] ?? Number.NaN);
      if (number < this.#options.number && !this.#reached.has(number)) this.#reach(number);
    }
    this.#cancelLook = this.#options.clock.after(LOOK_AROUND_MS, () => void this.#lookAround());
  }

  #reach(number: number): void {
    this.#reached.add(number);
    const socket = net.connect(this.#socketOf(number));
    socket.once('connect', () => this.#connected(socket, () => this.#reached.delete(number)));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      this.#reached.delete(number);
      if (error.code !== 'ECONNREFUSED') return;
      // It died and left its name behind; the one that takes its place has another. Or it is about to listen.
      if (this.#refused.has(number)) void rm(this.#socketOf(number), { force: true });
      this.#refused.add(number);
    });
  }

  #connected(socket: net.Socket, ended: () => void): void {
    const sibling: Sibling = { socket, shards: new Set(), heardAt: this.#now(), outgoing: null };
    const reader = new FrameReader();
    this.#siblings.add(sibling);
    socket.removeAllListeners('error');
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      this.#siblings.delete(sibling);
      ended();
    });
    socket.on('data', (piece) => {
      try {
        for (const message of reader.read(piece)) {
          if (message.kind === 'owns') this.#claims(sibling, message.shards);
          else this.#options.received(message.deliveries, message.commit);
        }
      } catch (error) {
        this.#options.problem('understand a sibling process', error);
        socket.destroy();
      }
    });
    socket.write(encodeOwns(this.#options.ownedShards()));
  }

  /** What one says last counts: whoever had a shard before may be unable to say that it has lost it. */
  #claims(sibling: Sibling, shards: readonly number[]): void {
    const news = shards.filter((shard) => !sibling.shards.has(shard));
    for (const other of this.#siblings) for (const shard of news) other.shards.delete(shard);
    sibling.shards = new Set(shards);
    sibling.heardAt = this.#now();
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
