/** Messages between simulated processes. The hub stands for the server between them, which may be unavailable. */
import type { Uuid } from '../domain/ids.ts';
import type { MessageBus } from '../ports/message-bus.ts';

type Handler = (message: Buffer, from: Uuid) => void;

export class MemoryMessageHub {
  readonly members = new Set<MemoryMessageBus>();
  /** False: the server is unavailable. */
  isUp = true;

  /** The server is back: every process connects again. */
  restart(): void {
    this.isUp = true;
    for (const member of this.members) member.onUp();
  }
}

export class MemoryMessageBus implements MessageBus {
  readonly id: Uuid;
  readonly #hub: MemoryMessageHub;
  readonly #handlers = new Map<string, Handler>();
  readonly #connectedHandlers: (() => void)[] = [];

  constructor(id: Uuid, hub: MemoryMessageHub) {
    this.id = id;
    this.#hub = hub;
    hub.members.add(this);
  }

  get isUsable(): boolean {
    return this.#hub.isUp;
  }

  async publish(channel: string, message: Buffer): Promise<number> {
    await Promise.resolve();
    if (!this.#hub.isUp) return 0;
    const receivers = [...this.#hub.members].filter((member) => member.#handlers.has(channel));
    for (const receiver of receivers)
      if (receiver !== this) queueMicrotask(() => receiver.#receive(channel, message, this.id));
    return receivers.length;
  }

  subscribe(channel: string, handler: Handler): () => void {
    if (this.#handlers.has(channel)) throw new Error(`${channel} has a handler already`);
    this.#handlers.set(channel, handler);
    return () => void this.#handlers.delete(channel);
  }

  onConnected(handler: () => void): void {
    this.#connectedHandlers.push(handler);
  }

  async flush(): Promise<void> {}

  /** Called by the hub. */
  onUp(): void {
    for (const handler of this.#connectedHandlers) handler();
  }

  #receive(channel: string, message: Buffer, from: Uuid): void {
    try {
      this.#handlers.get(channel)?.(message, from);
    } catch {
      // As with Redis: a message that a handler cannot take is dropped.
    }
  }
}
