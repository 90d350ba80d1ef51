/**
 * Keep-alive sockets by origin, and separately for each endpoint with a client certificate. A slot is one undici Client
 * with one socket, and carries one request at a time. So Posthorn always knows which attempt opens a connection, how
 * long that takes, and what to close at the deadline. undici's own Pool does not tell this. The slot that was used last is
 * taken first, so that the others stay idle and close.
 */
import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Client, type Dispatcher } from 'undici';
import { TurnoverMap } from '../domain/turnover-map.ts';
import type { Connector, ConnectTimes, Target } from './connector.ts';

/** Handles the events of the request on a slot. */
export interface SlotHandler extends Dispatcher.DispatchHandler {
  onConnected(times: ConnectTimes): void;
  /** Called before each read. False: the response has reached its cap, and the connection is closed. */
  mayRead(): boolean;
  /** Called with every chunk of the response, before undici parses it. */
  onReceived(chunk: Buffer): void;
}

export interface PoolSettings {
  readonly connector: Connector;
  readonly keepAliveMs: number;
  /** Limit for idle sockets of all origins together. */
  readonly maxIdleSockets: number;
  readonly maxHeaderBytes: number;
}

/** The target of a connection, and the key of the pool that shares such connections. */
export interface PoolTarget {
  readonly origin: string;
  readonly target: Target;
  /** Connections are shared within this key: the origin, and the client certificate if there is one. */
  readonly pool: string;
}

interface Origin {
  readonly poolTarget: PoolTarget;
  readonly idle: Slot[];
  slots: number;
}

const ignore = (): void => {};

export class Slot {
  readonly origin: Origin;
  readonly #pools: SocketPools;
  readonly #client: Client;
  #handler: SlotHandler | null = null;
  #cancelConnect: (() => void) | null = null;
  #socket: Socket | null = null;
  #dropped = false;
  /** True if the slot has completed a request before. */
  wasUsed = false;

  constructor(pools: SocketPools, origin: Origin, settings: PoolSettings) {
    this.#pools = pools;
    this.origin = origin;
    this.#client = new Client(origin.poolTarget.origin, {
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
        const cancel = settings.connector(origin.poolTarget.target, (error, socket, times) => {
          answered = true;
          this.#cancelConnect = null;
          this.#socket = socket;
          this.#handler?.onConnected(times);
          if (error !== null) callback(error, null);
          else callback(null, this.#meter(socket!));
        });
        // For a forbidden literal address the connector calls back before it returns.
        if (!answered) this.#cancelConnect = cancel;
      },
    });
    // undici emits errors that handlers throw here. Without a listener they would end the process.
    (this.#client as EventEmitter).on('error', ignore);
    this.#client.on('disconnect', () => {
      this.#socket = null;
      if (this.#handler === null) this.drop();
    });
  }

  /**
   * Shows the handler every chunk that is read. undici counts neither the reason phrase nor chunk extensions, so a receiver
   * could send them endlessly.
   */
  #meter(socket: Socket): Socket {
    const read = socket.read.bind(socket) as (size?: number) => Buffer | null;
    socket.read = (size?: number): Buffer | null => {
      if (this.#handler?.mayRead() === false) return null;
      const chunk = read(size);
      if (chunk !== null) this.#handler?.onReceived(chunk);
      return chunk;
    };
    return socket;
  }

  get isConnecting(): boolean {
    return this.#cancelConnect !== null;
  }

  /** True if the peer has closed its side. */
  get hasPeerEnded(): boolean {
    return this.#socket === null || this.#socket.readableEnded;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: SlotHandler): void {
    this.#handler = handler;
    this.#client.dispatch(options, handler);
  }

  /** Call this when the attempt is over and the connection can be reused. */
  release(): void {
    this.#handler = null;
    this.wasUsed = true;
    if (!this.#dropped) this.#pools.park(this);
  }

  /** Closes the connection immediately. */
  drop(): void {
    if (this.#dropped) return;
    this.#dropped = true;
    this.#handler = null;
    this.#cancelConnect?.();
    this.#cancelConnect = null;
    this.#pools.forget(this);
    this.#pools.trackClosing(this.#client.destroy());
  }
}

export class SocketPools {
  readonly #settings: PoolSettings;
  readonly #origins = new Map<string, Origin>();
  /** Idle slots of all origins, longest idle first. */
  readonly #idle = new TurnoverMap<Slot, Slot>();
  readonly #closing = new Set<Promise<void>>();

  constructor(settings: PoolSettings) {
    this.#settings = settings;
  }

  /** Returns an idle slot if there is one, otherwise a new one. `mustBeNew`: always a new one. */
  take(poolTarget: PoolTarget, mustBeNew: boolean): Slot {
    let origin = this.#origins.get(poolTarget.pool);
    if (origin === undefined) {
      origin = { poolTarget, idle: [], slots: 0 };
      this.#origins.set(poolTarget.pool, origin);
    }
    const idle = mustBeNew ? undefined : origin.idle.pop();
    if (idle !== undefined) {
      this.#idle.delete(idle);
      return idle;
    }
    origin.slots += 1;
    return new Slot(this, origin, this.#settings);
  }

  park(slot: Slot): void {
    slot.origin.idle.push(slot);
    this.#idle.set(slot, slot);
    if (this.#idle.size > this.#settings.maxIdleSockets) this.#idle.values().next().value?.drop();
  }

  forget(slot: Slot): void {
    const { origin } = slot;
    if (this.#idle.delete(slot)) origin.idle.splice(origin.idle.lastIndexOf(slot), 1);
    origin.slots -= 1;
    if (origin.slots === 0) this.#origins.delete(origin.poolTarget.pool);
  }

  trackClosing(closed: Promise<void>): void {
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
    for (const slot of [...this.#idle.values()]) slot.drop();
    while (this.#closing.size > 0) await Promise.all(this.#closing);
  }
}
