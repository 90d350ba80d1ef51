/**
 * Hands deliveries over to the process that owns their shard, payload included, so that the owner sends them without
 * reading the store. The transports connect this process with others: with those of its node through Unix sockets
 * (`SiblingSockets`), with those of other nodes through TLS (`NodeLinks`). Whenever the owner cannot be reached, a
 * notification wakes it, and it reads the store.
 *
 *   connected ──▶ shards announced ──▶ deliveries for them are handed over
 *                    │ silent, or its buffer is full: notify instead
 *                    └ connection closed: the transport connects again after a while
 *
 * Deliveries that are lost with a connection are in the store: a sweep finds them, or the next owner of the shards.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../domain/clock.ts';
import { shardOf } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { NewDelivery } from '../ports/accept-log.ts';
import type { Commit, CommittedDelivery, HandOver } from '../ports/hand-over.ts';
import { encodeCommitted, encodeShards, FrameReader } from './peer-frames.ts';

/** Connects this process with other processes. */
export interface PeerTransport {
  /** Calls `onConnected` for every connection, whichever side opened it. It must be trusted already. */
  start(onConnected: (socket: Socket) => void): Promise<void>;
  /** Stops listening and connecting. Connections stay open. */
  stop(): Promise<void>;
}

export interface PeerLinksOptions {
  readonly transports: readonly PeerTransport[];
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Even if nothing changed, an announcement shows that this process is alive. */
const ANNOUNCE_INTERVAL_MS = 500;
/** A peer that was silent for longer may be stopped, and other processes may own its shards. */
const MAX_SILENCE_MS = 2_000;
/** Unsent bytes per connection: a stopped peer must not fill our memory. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;

interface Peer {
  readonly socket: Socket;
  shards: Set<number>;
  lastHeardAt: number;
  /** Deliveries of one commit, written as one frame in the next microtask. */
  outgoing: { readonly commit: Commit; readonly deliveries: CommittedDelivery[] } | null;
}

export class PeerLinks implements HandOver {
  readonly #options: PeerLinksOptions;
  readonly #peers = new Set<Peer>();
  #ownedShards: () => readonly number[] = () => [];
  #onReceived: (deliveries: readonly CommittedDelivery[], commit: Commit) => void = () => {};
  #cancelAnnouncement: (() => void) | null = null;
  #stopped = false;

  constructor(options: PeerLinksOptions) {
    this.#options = options;
  }

  async start(ownedShards: () => readonly number[]): Promise<void> {
    this.#ownedShards = ownedShards;
    for (const transport of this.#options.transports)
      await transport.start((socket) => this.#onConnected(socket));
    this.#announceRegularly();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelAnnouncement?.();
    await Promise.all(this.#options.transports.map((transport) => transport.stop()));
    for (const { socket } of this.#peers) socket.end();
  }

  onReceived(handler: (deliveries: readonly CommittedDelivery[], commit: Commit) => void): void {
    this.#onReceived = handler;
  }

  offer(delivery: NewDelivery, event: EventContent, commit: Commit): boolean {
    const shard = shardOf(delivery.endpointId);
    for (const peer of this.#peers) {
      if (!peer.shards.has(shard)) continue;
      if (this.#now() - peer.lastHeardAt > MAX_SILENCE_MS) return false;
      if (peer.socket.writableLength > MAX_BUFFERED_BYTES) return false;
      if (peer.outgoing?.commit !== commit) {
        this.#flush(peer);
        peer.outgoing = { commit, deliveries: [] };
        queueMicrotask(() => this.#flush(peer));
      }
      peer.outgoing.deliveries.push({ delivery, event });
      return true;
    }
    return false;
  }

  announceShards(): void {
    const message = encodeShards(this.#ownedShards());
    for (const { socket } of this.#peers) socket.write(message);
  }

  #announceRegularly(): void {
    if (this.#stopped) return;
    this.announceShards();
    this.#cancelAnnouncement = this.#options.clock.after(ANNOUNCE_INTERVAL_MS, () =>
      this.#announceRegularly(),
    );
  }

  #flush(peer: Peer): void {
    const { outgoing } = peer;
    if (outgoing === null) return;
    peer.outgoing = null;
    peer.socket.write(encodeCommitted(outgoing.deliveries, outgoing.commit));
  }

  #onConnected(socket: Socket): void {
    if (this.#stopped) return void socket.destroy();
    const peer: Peer = { socket, shards: new Set(), lastHeardAt: this.#now(), outgoing: null };
    const reader = new FrameReader();
    this.#peers.add(peer);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#peers.delete(peer));
    socket.on('data', (piece) => {
      try {
        for (const message of reader.read(piece)) {
          if (message.kind === 'shards') this.#updateShards(peer, message.shards);
          else this.#onReceived(message.deliveries, message.commit);
        }
      } catch (error) {
        this.#options.onProblem('read a message of another process', error);
        socket.destroy();
      }
    });
    socket.write(encodeShards(this.#ownedShards()));
  }

  /** The latest announcement of a shard wins: a previous owner may be unable to tell that it has lost the shard. */
  #updateShards(peer: Peer, shards: readonly number[]): void {
    const added = shards.filter((shard) => !peer.shards.has(shard));
    for (const other of this.#peers) for (const shard of added) other.shards.delete(shard);
    peer.shards = new Set(shards);
    peer.lastHeardAt = this.#now();
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}
