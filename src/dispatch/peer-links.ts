/**
 * Hands deliveries over to the process that owns their shard, payload included, so that the owner sends them without
 * reading the store. The transports connect this process with others: with those of its node through Unix sockets
 * (`SiblingSockets`), with those of other nodes through TLS (`NodeLinks`). Processes that cannot connect to each other may
 * use a message bus (`BusLinks`). Whenever the owner cannot be reached, a notification wakes it, and it reads the store.
 *
 *   connected, or heard on the bus ──▶ shards announced ──▶ deliveries for them are handed over
 *                    │ silent, or its buffer is full, or the bus is slow: notify instead
 *                    │ the bus says that nobody received a frame: forget the process, and notify
 *                    └ connection closed: the transport connects again after a while
 *
 * A process with a connection that is not silent is never used through the bus. Deliveries that are lost with a connection
 * are in the store: a sweep finds them, or the next owner of the shards.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../domain/clock.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import { NO_LOAD, type ProcessLoad, worseLoad } from '../domain/load-meter.ts';
import type { NewDelivery } from '../ports/event-store.ts';
import type { Commit, CommittedDelivery, HandOver, HandOverRoute } from '../ports/hand-over.ts';
import type { BusLinks } from './bus-links.ts';
import {
  encodeCommitted,
  encodeShards,
  FrameReader,
  type PeerMessage,
  type ShardsMessage,
} from './peer-frames.ts';

/** Connects this process with other processes. */
export interface PeerTransport {
  /** True if the processes run on the node of this one. */
  readonly isWithinNode: boolean;
  /** Calls `onConnected` for every connection, whichever side opened it. It must be trusted already. */
  start(onConnected: (socket: Socket) => void): Promise<void>;
  /** Stops listening and connecting. Connections stay open. */
  stop(): Promise<void>;
}

export interface PeerLinksOptions {
  /** Identifies this process. */
  readonly id: Uuid;
  readonly transports: readonly PeerTransport[];
  /** For processes that no transport connects. Null: they are notified. */
  readonly bus: BusLinks | null;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Even if nothing changed, an announcement shows that this process is alive. */
const ANNOUNCE_INTERVAL_MS = 500;
/** A peer that was silent for longer may be stopped, and other processes may own its shards. */
const MAX_SILENCE_MS = 2_000;
/** Unsent bytes per connection: a stopped peer must not fill our memory. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
/**
 * The most payload bytes of a frame. A server between the nodes buffers a limited number of bytes for each process.
 */
const MAX_FRAME_BYTES = 1024 * 1024;

type DeliveriesHandler = (deliveries: readonly CommittedDelivery[], commit: Commit) => void;

interface Peer {
  /** Null: the peer has not announced its id. */
  id: Uuid | null;
  readonly route: HandOverRoute;
  readonly isSibling: boolean;
  readonly canSend: (event: EventContent) => boolean;
  /** Returns a promise of false if the frame probably did not arrive. A connection cannot tell. */
  readonly send: (frame: Buffer) => Promise<boolean> | null;
  shards: Set<number>;
  load: ProcessLoad;
  lastHeardAt: number;
  /** Deliveries of one commit, written as one frame in the next microtask. */
  outgoing: Outgoing | null;
}

interface Outgoing {
  readonly commit: Commit;
  readonly deliveries: CommittedDelivery[];
  bytes: number;
}

export class PeerLinks implements HandOver {
  readonly #options: PeerLinksOptions;
  /** Peers with a connection. */
  readonly #sockets = new Map<Socket, Peer>();
  /** Peers without a connection, known from the bus. */
  readonly #onBus = new Map<Uuid, Peer>();
  #ownedShards: () => readonly number[] = () => [];
  #own: { readonly load: ProcessLoad } = { load: NO_LOAD };
  #onReceived: DeliveriesHandler = () => {};
  #onUndelivered: DeliveriesHandler = () => {};
  #hasAnnouncedShards = false;
  #cancelAnnouncement: (() => void) | null = null;
  #isStopped = false;

  constructor(options: PeerLinksOptions) {
    this.#options = options;
  }

  async start(ownedShards: () => readonly number[], own = this.#own): Promise<void> {
    this.#ownedShards = ownedShards;
    this.#own = own;
    const { transports, bus } = this.#options;
    for (const transport of transports)
      await transport.start((socket) => this.#onConnected(socket, transport.isWithinNode));
    bus?.start(
      (from, message) => this.#onBusMessage(from, message),
      () => this.announceShards(),
    );
    this.#announceRegularly();
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelAnnouncement?.();
    const { transports, bus, id } = this.#options;
    await Promise.all([
      bus?.announce(encodeShards([], id, NO_LOAD)),
      ...transports.map((each) => each.stop()),
    ]);
    await bus?.stop();
    for (const socket of this.#sockets.keys()) socket.end();
  }

  /**
   * A silent process counts as idle: if it has stopped, others take its shards. A process without shards counts too: it may be so busy
   * that its lease has just expired.
   */
  get siblingLoad(): ProcessLoad {
    let worst = NO_LOAD;
    for (const peer of this.#sockets.values())
      if (peer.isSibling && !this.#isSilent(peer)) worst = worseLoad(worst, peer.load);
    return worst;
  }

  onReceived(handler: DeliveriesHandler): void {
    this.#onReceived = handler;
  }

  onUndelivered(handler: DeliveriesHandler): void {
    this.#onUndelivered = handler;
  }

  offer(shard: number, delivery: NewDelivery, event: EventContent, commit: Commit): HandOverRoute | null {
    const peer = this.#ownerOf(shard);
    if (peer === null || this.#isSilent(peer) || !peer.canSend(event)) return null;
    if (peer.outgoing?.commit !== commit || peer.outgoing.bytes > MAX_FRAME_BYTES) {
      this.#flush(peer);
      peer.outgoing = { commit, deliveries: [], bytes: 0 };
      queueMicrotask(() => this.#flush(peer));
    }
    const { outgoing } = peer;
    if (outgoing.deliveries.at(-1)?.event !== event) outgoing.bytes += event.data.length;
    outgoing.deliveries.push({ delivery, event });
    return peer.route;
  }

  announceShards(): void {
    if (this.#isStopped) return;
    const shards = this.#ownedShards();
    this.#hasAnnouncedShards = shards.length > 0;
    const message = encodeShards(shards, this.#options.id, this.#own.load);
    for (const socket of this.#sockets.keys()) socket.write(message);
    void this.#options.bus?.announce(message);
  }

  #announceRegularly(): void {
    if (this.#isStopped) return;
    // Nobody hands deliveries to a process without shards, so it need not show that it is alive, unless it is busy.
    if (this.#hasAnnouncedShards || this.#ownedShards().length > 0 || isBusy(this.#own.load))
      this.announceShards();
    for (const [id, peer] of this.#onBus) if (this.#isSilent(peer)) this.#onBus.delete(id);
    this.#cancelAnnouncement = this.#options.clock.after(ANNOUNCE_INTERVAL_MS, () =>
      this.#announceRegularly(),
    );
  }

  #ownerOf(shard: number): Peer | null {
    for (const peer of this.#sockets.values()) if (peer.shards.has(shard)) return peer;
    for (const peer of this.#onBus.values()) if (peer.shards.has(shard)) return peer;
    return null;
  }

  #flush(peer: Peer): void {
    const { outgoing } = peer;
    if (outgoing === null) return;
    peer.outgoing = null;
    const { deliveries, commit } = outgoing;
    void peer.send(encodeCommitted(deliveries, commit))?.then((hasArrived) => {
      if (!hasArrived) this.#onLostFrame(peer, deliveries, commit);
    });
  }

  /** The process may have stopped. If not, its next announcement brings it back. */
  #onLostFrame(peer: Peer, deliveries: readonly CommittedDelivery[], commit: Commit): void {
    if (peer.id !== null && this.#onBus.get(peer.id) === peer) this.#onBus.delete(peer.id);
    this.#onUndelivered(deliveries, commit);
  }

  #onConnected(socket: Socket, isSibling: boolean): void {
    if (this.#isStopped) return void socket.destroy();
    const peer: Peer = {
      ...this.#newPeer(),
      id: null,
      isSibling,
      route: 'sibling',
      canSend: () => socket.writableLength <= MAX_BUFFERED_BYTES,
      send: (frame) => {
        socket.write(frame);
        return null;
      },
    };
    const reader = new FrameReader();
    this.#sockets.set(socket, peer);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (piece) => {
      try {
        for (const message of reader.read(piece)) {
          if (message.kind === 'shards') this.#onSocketShards(peer, message);
          else this.#onReceived(message.deliveries, message.commit);
        }
      } catch (error) {
        this.#options.onProblem('read a message of another process', error);
        socket.destroy();
      }
    });
    socket.write(encodeShards(this.#ownedShards(), this.#options.id, this.#own.load));
  }

  #onSocketShards(peer: Peer, { shards, from, load }: ShardsMessage): void {
    peer.id = from;
    peer.load = load;
    if (from !== null) this.#onBus.delete(from);
    this.#updateShards(peer, shards);
  }

  #onBusMessage(from: Uuid, message: PeerMessage): void {
    if (message.kind === 'committed') return this.#onReceived(message.deliveries, message.commit);
    if (this.#isConnectedTo(from)) return;
    const { bus } = this.#options;
    const peer = this.#onBus.get(from) ?? {
      ...this.#newPeer(),
      id: from,
      isSibling: false,
      route: 'redis' as const,
      canSend: (event: EventContent) => bus!.canSend && event.data.length <= MAX_FRAME_BYTES,
      send: (frame: Buffer) => bus!.send(from, frame),
    };
    if (message.shards.length === 0) this.#onBus.delete(from);
    else this.#onBus.set(from, peer);
    this.#updateShards(peer, message.shards);
  }

  /** False also if the connection is silent: it may be cut without notice. */
  #isConnectedTo(id: Uuid): boolean {
    for (const peer of this.#sockets.values()) if (peer.id === id && !this.#isSilent(peer)) return true;
    return false;
  }

  /** The latest announcement of a shard wins: a previous owner may be unable to tell that it has lost the shard. */
  #updateShards(peer: Peer, shards: readonly number[]): void {
    const added = shards.filter((shard) => !peer.shards.has(shard));
    for (const others of [this.#sockets, this.#onBus])
      for (const other of others.values()) for (const shard of added) other.shards.delete(shard);
    peer.shards = new Set(shards);
    peer.lastHeardAt = this.#now();
  }

  #isSilent({ lastHeardAt }: Peer): boolean {
    return this.#now() - lastHeardAt > MAX_SILENCE_MS;
  }

  #newPeer(): Pick<Peer, 'shards' | 'load' | 'lastHeardAt' | 'outgoing'> {
    return { shards: new Set(), load: NO_LOAD, lastHeardAt: this.#now(), outgoing: null };
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }
}

const isBusy = ({ loopDelayMs, commitMs }: ProcessLoad): boolean => loopDelayMs > 0 || commitMs > 0;
