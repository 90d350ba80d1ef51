/**
 * Carries the messages of live tails through a message bus, and by NOTIFY where the bus does not reach.
 *
 *   filters    both ways; they are few. A process whose filters arrive through the bus can be reached through it
 *   messages   one way only, so that nobody sees them twice: through the bus if it reaches every process that watches,
 *              otherwise by NOTIFY, which reaches all
 *
 * If the bus reaches fewer processes than it should, this batch is lost for the others, and the next ones go by NOTIFY until
 * filters arrive through the bus again.
 */
import type { Clock } from '../../domain/clock.ts';
import type { MessageBus } from '../../ports/message-bus.ts';
import { decodeInterest } from './wire.ts';

export type TailChannel = 'tail' | 'tailInterest';

/** Brings messages to the live tails of other processes. A `Notifier` is one. */
export interface TailTransport {
  publish(channel: TailChannel, messages: readonly string[]): void;
  subscribe(channel: TailChannel, handler: (message: string) => void): () => void;
  flush(): Promise<void>;
}

export interface TailChannelsOptions {
  readonly notifier: TailTransport;
  readonly bus: MessageBus;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** The name of this process in live tails. */
  readonly processName: string;
  /** For how long an announced filter is valid. */
  readonly interestMs: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

const NEVER = Number.NEGATIVE_INFINITY;

/** A process that watches. */
interface Watching {
  readonly until: number;
  readonly onBusUntil: number;
}

export class TailChannels implements TailTransport {
  /** Batches of messages that were sent by NOTIFY. */
  fallBacks = 0;
  readonly #options: TailChannelsOptions;
  readonly #watching = new Map<string, Watching>();
  #isWatching = false;

  constructor(options: TailChannelsOptions) {
    this.#options = options;
  }

  publish(channel: TailChannel, messages: readonly string[]): void {
    const { notifier, bus } = this.#options;
    if (channel === 'tailInterest') {
      notifier.publish(channel, messages);
      for (const message of messages) void bus.publish(channel, Buffer.from(message));
    } else if (this.#reachesAll()) {
      for (const message of messages) void this.#publishOnBus(message);
    } else {
      this.fallBacks += 1;
      notifier.publish(channel, messages);
    }
  }

  subscribe(channel: TailChannel, handler: (message: string) => void): () => void {
    const { notifier, bus } = this.#options;
    if (channel === 'tail') this.#isWatching = true;
    const receive = (message: string, isOnBus: boolean): void => {
      if (channel === 'tailInterest') this.#onInterest(message, isOnBus);
      handler(message);
    };
    const ends = [
      notifier.subscribe(channel, (message) => receive(message, false)),
      bus.subscribe(channel, (message) => receive(message.toString(), true)),
    ];
    return () => {
      if (channel === 'tail') this.#isWatching = false;
      for (const end of ends) end();
    };
  }

  async flush(): Promise<void> {
    await Promise.all([this.#options.notifier.flush(), this.#options.bus.flush()]);
  }

  async #publishOnBus(message: string): Promise<void> {
    const expected = this.#watching.size + (this.#isWatching ? 1 : 0);
    const reached = await this.#options.bus.publish('tail', Buffer.from(message));
    if (reached >= expected) return;
    for (const [from, { until }] of this.#watching) this.#watching.set(from, { until, onBusUntil: NEVER });
  }

  #reachesAll(): boolean {
    const { bus, clock } = this.#options;
    const now = clock.monotonic();
    for (const [from, { until }] of this.#watching) if (until < now) this.#watching.delete(from);
    return bus.isUsable && [...this.#watching.values()].every(({ onBusUntil }) => onBusUntil >= now);
  }

  #onInterest(message: string, isOnBus: boolean): void {
    const { clock, processName, interestMs, onProblem } = this.#options;
    try {
      const { from, filters } = decodeInterest(message);
      if (from === processName) return;
      const until = clock.monotonic() + interestMs;
      const onBusUntil = isOnBus ? until : (this.#watching.get(from)?.onBusUntil ?? NEVER);
      if (filters.length === 0) this.#watching.delete(from);
      else this.#watching.set(from, { until, onBusUntil });
    } catch (error) {
      onProblem('read a live tail message of another process', error);
    }
  }
}
