/**
 * Keep-alive sockets by origin, and separately for each endpoint with a client certificate. A slot is one undici Client
 * with one socket, and carries one attempt at a time. So it is always known for which attempt a connection is being
 * opened, how long that took, and what to close at the deadline; undici's own Pool does not tell. The slot that was used
 * last is taken first, so that the others become idle and close.
 */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import type { Connector, ConnectTimes, Target } from './connector.ts';

/** Receives the events of the request that a slot carries. */
export interface Passenger extends Dispatcher.DispatchHandler {
  connected(times: ConnectTimes): void;
  /** Called before each read. False: the response has reached its cap, and the connection is closed. */
  mayRead(): boolean;
  /** Called with every chunk of the response, before undici parses it. */
  received(chunk: Buffer): void;
}

export interface PoolSettings {
  readonly connector: Connector;
  readonly keepAliveMs: number;
  /** Limit for idle sockets of all origins together. */
  readonly maxIdleSockets: number;
  readonly maxHeaderBytes: number;
}

/** The target of a connection, and who may share the connection. */
export interface Place {
  readonly origin: string;
  readonly target: Target;
  /** Connections are shared within this key: the origin, and the client certificate if there is one. */
  readonly pool: string;
}

interface Origin {
  readonly place: Place;
  readonly idle: Slot[];
  slots: number;
}

const ignore = (): void => {};

export class Slot {
  readonly origin: Origin;
  readonly #pools: SocketPools;
  readonly #client: Client;
  #passenger: Passenger | null = null;
  #cancelConnect: (() => void) | null = null;
  #socket: Socket | null = null;
  #dropped = false;
  /** True if the slot has carried an attempt before. */
  warm = false;

  constructor(pools: SocketPools, origin: Origin, settings: PoolSettings) {
    this.#pools = pools;
    this.origin = origin;
    this.#client = new Client(origin.place.origin, {
      pipelining: 1,
      allowH2: false,
      // The attempt has its own deadline over everything.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: settings.keepAliveMs,
      keepAliveMaxTimeout: settings.keepAliveMs,
      maxHeaderSize: settings.maxHeaderBytes,
      connect: (_options, callback) => {
        let answered = false;
        const cancel = settings.connector(origin.place.target, (error, socket, times) => {
          answered = true;
          this.#cancelConnect = null;
          this.#socket = socket;
          this.#passenger?.connected(times);
          if (error !== null) callback(error, null);
          else callback(null, this.#meter(socket!));
        });
        // For a forbidden literal address the connector calls back before it returns.
        if (!answered) this.#cancelConnect = cancel;
      },
    });
    // undici emits errors of handlers here. Without a listener they would end the process.
    (this.#client as EventEmitter).on('error', ignore);
    this.#client.on('disconnect', () => {
      this.#socket = null;
      if (this.#passenger === null) this.drop();
    });
  }

  /**
   * Lets the passenger see what is read. undici counts neither the reason phrase nor chunk extensions, so a receiver could
   * send them without end.
   */
  #meter(socket: Socket): Socket {
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    socket.read = (size?: number): Buffer | null => {
      if (this.#passenger?.mayRead() === false) return null;
      const chunk = read(size);
      if (chunk !== null) this.#passenger?.received(chunk);
      return chunk;
    };
    return socket;
  }

  get connecting(): boolean {
    return this.#cancelConnect !== null;
  }

  /** True if the peer has closed its side. */
  get peerEnded(): boolean {
    return this.#socket === null || this.#socket.readableEnded;
  }

  dispatch(options: Dispatcher.DispatchOptions, passenger: Passenger): void {
    this.#passenger = passenger;
    this.#client.dispatch(options, passenger);
  }

  /** Call this when the attempt is over and the connection can be reused. */
  release(): void {
    this.#passenger = null;
    this.warm = true;
    if (!this.#dropped) this.#pools.park(this);
  }

  /** Closes the connection at once. */
  drop(): void {
    if (this.#dropped) return;
    this.#dropped = true;
    this.#passenger = null;
    this.#cancelConnect?.();
    this.#cancelConnect = null;
    this.#pools.forget(this);
    this.#pools.closing(this.#client.destroy());
  }
}

export class SocketPools {
  readonly #settings: PoolSettings;
  readonly #origins = new Map<string, Origin>();
  /** Idle slots of all origins, longest idle first. */
  readonly #idle = new Set<Slot>();
  readonly #closing = new Set<Promise<void>>();

  constructor(settings: PoolSettings) {
    this.#settings = settings;
  }

  /** Returns an idle slot if there is one, otherwise a new one. `fresh`: always a new one. */
  take(place: Place, fresh: boolean): Slot {
    let origin = this.#origins.get(place.pool);
    if (origin === undefined) {
      origin = { place, idle: [], slots: 0 };
      this.#origins.set(place.pool, origin);
    }
    const warm = fresh ? undefined : origin.idle.pop();
    if (warm !== undefined) {
      this.#idle.delete(warm);
      return warm;
    }
    origin.slots += 1;
    return new Slot(this, origin, this.#settings);
  }

  park(slot: Slot): void {
    slot.origin.idle.push(slot);
    this.#idle.add(slot);
    if (this.#idle.size > this.#settings.maxIdleSockets) this.#idle.values().next().value?.drop();
  }

  forget(slot: Slot): void {
    const { origin } = slot;
    if (this.#idle.delete(slot)) origin.idle.splice(origin.idle.lastIndexOf(slot), 1);
    origin.slots -= 1;
    if (origin.slots === 0) this.#origins.delete(origin.place.pool);
  }

  closing(closed: Promise<void>): void {
    this.#closing.add(closed);
    const over = (): void => {
      this.#closing.delete(closed);
    };
    closed.then(over, over);
  }

  get idleSockets(): number {
    return this.#idle.size;
  }

  get origins(): number {
    return this.#origins.size;
  }

  /** Closes idle slots. Resolves when every socket that was dropped is closed. */
  async close(): Promise<void> {
    for (const slot of [...this.#idle]) slot.drop();
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }
}
