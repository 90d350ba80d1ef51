/** Messages between simulated processes. A bus connects the notifiers; it may delay messages, lose them and break connections. */
import type { Clock } from '../domain/clock.ts';
import type { Channel, Channels, Notifier } from '../ports/notifier.ts';

export interface MemoryBusOptions {
  /** How long a message takes to one subscriber. Infinity: it is lost. Default: no time. */
  readonly delayMs?: (channel: Channel) => number;
}

type Handler = (message: never) => void;

const RECONNECT_MS = 200;

export class MemoryBus {
  delayMs: (channel: Channel) => number;
  readonly #notifiers = new Set<MemoryNotifier>();

  constructor({ delayMs = () => 0 }: MemoryBusOptions = {}) {
    this.delayMs = delayMs;
  }

  connect(notifier: MemoryNotifier): void {
    this.#notifiers.add(notifier);
  }

  disconnect(notifier: MemoryNotifier): void {
    this.#notifiers.delete(notifier);
  }

  send<C extends Channel>(channel: C, message: Channels[C]): void {
    for (const notifier of this.#notifiers) {
      const delayMs = this.delayMs(channel);
      if (Number.isFinite(delayMs)) notifier.receiveAfter(delayMs, channel, message);
    }
  }
}

export interface MemoryNotifierOptions {
  readonly bus: MemoryBus;
  readonly clock: Pick<Clock, 'after'>;
}

export class MemoryNotifier implements Notifier {
  readonly #bus: MemoryBus;
  readonly #clock: Pick<Clock, 'after'>;
  readonly #handlers = new Map<Channel, Set<Handler>>();
  readonly #reconnectHandlers: (() => void)[] = [];
  #sending: Promise<void> = Promise.resolve();
  /** Grows with every connection: messages of an earlier one do not arrive. */
  #connection = 0;
  #isConnected = false;
  #isStopped = false;

  constructor({ bus, clock }: MemoryNotifierOptions) {
    this.#bus = bus;
    this.#clock = clock;
  }

  get isConnected(): boolean {
    return this.#isConnected;
  }

  publish<C extends Channel>(channel: C, messages: readonly Channels[C][]): void {
    this.#sending = this.#sending.then(() => {
      for (const message of messages) this.#bus.send(channel, message);
    });
  }

  subscribe<C extends Channel>(channel: C, handler: (message: Channels[C]) => void): () => void {
    let handlers = this.#handlers.get(channel);
    if (handlers === undefined) {
      handlers = new Set();
      this.#handlers.set(channel, handlers);
    }
    handlers.add(handler as Handler);
    return () => void handlers.delete(handler as Handler);
  }

  onReconnected(handler: () => void): void {
    this.#reconnectHandlers.push(handler);
  }

  flush(): Promise<void> {
    return this.#sending;
  }

  async start(): Promise<void> {
    if (!this.#isConnected && !this.#isStopped) this.#connect();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#disconnect();
    await this.flush();
  }

  /** Breaks the connection. The notifier makes a new one after a while. */
  breakConnection(): void {
    if (!this.#isConnected) return;
    this.#disconnect();
    this.#clock.after(RECONNECT_MS, () => {
      if (!this.#isStopped && !this.#isConnected) this.#connect();
    });
  }

  /** Called by the bus. */
  receiveAfter<C extends Channel>(delayMs: number, channel: C, message: Channels[C]): void {
    const connection = this.#connection;
    this.#clock.after(delayMs, () => {
      if (!this.#isConnected || connection !== this.#connection) return;
      for (const handler of [...(this.#handlers.get(channel) ?? [])]) {
        try {
          handler(message as never);
        } catch {
          // As with PostgreSQL: a message that a handler cannot take is dropped.
        }
      }
    });
  }

  #connect(): void {
    this.#connection += 1;
    this.#isConnected = true;
    this.#bus.connect(this);
    for (const handler of this.#reconnectHandlers) handler();
  }

  #disconnect(): void {
    this.#isConnected = false;
    this.#bus.disconnect(this);
  }
}
