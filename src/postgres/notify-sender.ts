/** Gathers messages while one statement is being sent and sends them with the next: one NOTIFY serves many commits. */
import type { Uuid } from '../domain/ids.ts';
import type { Channel, Channels, WakeScope } from '../ports/notifier.ts';
import type { Pool } from './database.ts';
import { CHANNEL_NAMES, encodeMessage, IDS_PER_WAKE } from './notifier-channels.ts';

type Payload = readonly [channel: string, payload: string];

export class NotifySender {
  readonly #pool: Pool;
  readonly #onFailed: (error: unknown) => void;
  /** Endpoints to wake, each once, with the widest scope that was asked for. */
  #wakes = new Map<Uuid, WakeScope>();
  #payloads: Payload[] = [];
  #flushed: (() => void)[] = [];
  #isSending = false;

  constructor(pool: Pool, onFailed: (error: unknown) => void) {
    this.#pool = pool;
    this.#onFailed = onFailed;
  }

  add<C extends Channel>(channel: C, message: Channels[C]): void {
    if (channel === 'wake') this.#addWake(message as Channels['wake']);
    else this.#payloads.push([CHANNEL_NAMES[channel], encodeMessage(channel, message)]);
    if (!this.#isSending) void this.#run();
  }

  get isSending(): boolean {
    return this.#isSending;
  }

  /** Resolves when every message added so far was sent or failed. */
  async flush(): Promise<void> {
    if (this.#isSending) await new Promise<void>((resolve) => this.#flushed.push(resolve));
  }

  #addWake({ endpointIds, scope }: Channels['wake']): void {
    for (const id of endpointIds) if (scope === 'sweep' || !this.#wakes.has(id)) this.#wakes.set(id, scope);
  }

  async #run(): Promise<void> {
    this.#isSending = true;
    // Let the rest of the batch be added first.
    await Promise.resolve();
    while (this.#wakes.size + this.#payloads.length + this.#flushed.length > 0) {
      const payloads = [...this.#takeWakes(), ...this.#payloads];
      const flushed = this.#flushed;
      this.#payloads = [];
      this.#flushed = [];
      if (payloads.length > 0) await this.#send(payloads);
      for (const resolve of flushed) resolve();
    }
    this.#isSending = false;
  }

  async #send(payloads: readonly Payload[]): Promise<void> {
    try {
      await this.#pool.query({
        name: 'notify',
        text: 'select pg_notify(channel, payload) from unnest($1::text[], $2::text[]) as t(channel, payload)',
        values: [payloads.map(([channel]) => channel), payloads.map(([, payload]) => payload)],
      });
    } catch (error) {
      this.#onFailed(error);
    }
  }

  #takeWakes(): Payload[] {
    const wakes = this.#wakes;
    this.#wakes = new Map();
    const payloads: Payload[] = [];
    for (const scope of ['recent', 'sweep'] as const) {
      const ids = [...wakes].filter((entry) => entry[1] === scope).map(([id]) => id);
      for (let i = 0; i < ids.length; i += IDS_PER_WAKE) {
        const message = { endpointIds: ids.slice(i, i + IDS_PER_WAKE), scope };
        payloads.push([CHANNEL_NAMES.wake, encodeMessage('wake', message)]);
      }
    }
    return payloads;
  }
}
