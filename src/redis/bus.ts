/** The message bus on Redis pub/sub. All messages are sealed (`seal.ts`). */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { MessageBus } from '../ports/message-bus.ts';
import { type RedisLink, RedisUnavailableError } from './link.ts';
import { Seal } from './seal.ts';

export interface RedisBusOptions {
  readonly link: RedisLink;
  /** Identifies this process. */
  readonly id: Uuid;
  /** The prefix of all channels: unique to the deployment, and the same in all its processes. */
  readonly prefix: string;
  /** The keys of the deployment by their ids, the current one first. */
  readonly keys: ReadonlyMap<string, Buffer>;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

export class RedisBus implements MessageBus {
  /** Messages that were refused: not authentic, repeated or too old. */
  refused = 0;
  readonly id: Uuid;
  readonly #options: RedisBusOptions;
  readonly #seal: Seal;

  constructor(options: RedisBusOptions) {
    this.#options = options;
    this.id = options.id;
    this.#seal = new Seal(options);
  }

  get isUsable(): boolean {
    return this.#options.link.isUsable;
  }

  async publish(channel: string, message: Buffer): Promise<number> {
    const { link, onProblem } = this.#options;
    if (!link.isUsable) return 0;
    const name = this.#nameOf(channel);
    try {
      return Number(await link.run(['PUBLISH', name, this.#seal.seal(message, name)]));
    } catch (error) {
      // The link itself reports that Redis is unavailable.
      if (link.isConnected && !(error instanceof RedisUnavailableError))
        onProblem('publish through Redis', error);
      return 0;
    }
  }

  subscribe(channel: string, handler: (message: Buffer, from: Uuid) => void): () => void {
    return this.#options.link.subscribe(this.#nameOf(channel), (sealed, name) => {
      const opened = this.#open(sealed, name);
      if (opened !== null && opened.from !== this.id) handler(opened.message, opened.from);
    });
  }

  onConnected(handler: () => void): void {
    this.#options.link.onConnected(handler);
  }

  flush(): Promise<void> {
    return this.#options.link.flush();
  }

  #open(sealed: Buffer, name: string) {
    try {
      return this.#seal.open(sealed, name);
    } catch (error) {
      this.refused += 1;
      this.#options.onProblem('open a message from Redis', error);
      return null;
    }
  }

  #nameOf(channel: string): string {
    return `${this.#options.prefix}:${channel}`;
  }
}
