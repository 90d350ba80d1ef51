/** Posts events, and keeps the ids that got a 202. */
import { setTimeout as delay } from 'node:timers/promises';
import { type RegisteredEndpoint, TENANT } from './endpoints.ts';
import type { Random } from './random.ts';
import type { System } from './system.ts';

export interface AcceptedEvent {
  readonly id: string;
  readonly type: string;
  readonly postedAt: number;
  readonly acceptedAt: number;
  /** The endpoints that must get it: those that were created before it was posted. */
  readonly endpoints: readonly string[];
  readonly keyed: boolean;
  /** For FIFO endpoints: its place in the order of the producer. */
  readonly order: number | null;
}

type Answer = { kind: 'accepted'; id: string } | { kind: 'refused' } | { kind: 'unknown' };

const POST_TIMEOUT_MS = 6000;

export class Producer {
  readonly accepted: AcceptedEvent[] = [];
  /** Events without a key whose connection was lost: they may have been accepted. */
  unknown = 0;
  refused = 0;
  readonly #system: System;
  readonly #random: Random;
  readonly #endpoints: readonly RegisteredEndpoint[];
  #posted = 0;
  #running: Promise<void>[] = [];
  #stopped = false;

  constructor(system: System, endpoints: readonly RegisteredEndpoint[], random: Random) {
    this.#system = system;
    this.#random = random;
    this.#endpoints = endpoints;
  }

  /**
   * Posts `perSecond` events to endpoints without an order. Each FIFO endpoint has one producer, which posts one event
   * at a time.
   */
  start(types: readonly string[], perSecond: number): void {
    const LOOPS = 10;
    for (let i = 0; i < LOOPS; i += 1) {
      this.#loop((LOOPS * 1000) / perSecond, () => this.#post(this.#random.pick(types), null));
    }
    for (const endpoint of this.#endpoints.filter(({ fifo }) => fifo)) {
      let order = 0;
      this.#loop(100, () => {
        order += 1;
        return this.#post(endpoint.types[0]!, order);
      });
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  #loop(everyMs: number, turn: () => Promise<void>): void {
    const run = async (): Promise<void> => {
      while (!this.#stopped) {
        const startedAt = Date.now();
        await turn();
        await delay(Math.max(0, everyMs * (0.5 + this.#random.next()) - (Date.now() - startedAt)));
      }
    };
    this.#running.push(run());
  }

  async #post(type: string, order: number | null): Promise<void> {
    this.#posted += 1;
    const keyed = order !== null || this.#random.chance(0.6);
    const key = keyed ? `chaos-${this.#posted}` : null;
    const subscribed = this.#endpoints.filter(({ types }) => types.includes(type));
    const body = {
      type,
      tenant: subscribed[0]?.tenant ?? TENANT,
      data: {
        number: this.#posted,
        key: this.#posted % 2,
        order,
        filler: 'x'.repeat(Math.floor(this.#random.between(0, 400))),
      },
      ...(key === null ? {} : { idempotency_key: key }),
    };
    const endpoints = subscribed.map(({ name }) => name);
    const postedAt = Date.now();
    for (;;) {
      const answer = await this.#postOnce(body);
      if (answer.kind === 'accepted') {
        const { id } = answer;
        this.accepted.push({ id, type, postedAt, acceptedAt: Date.now(), endpoints, keyed, order });
        return;
      }
      // With a key, every request may be repeated. Without one, only a request that certainly was not accepted.
      if (!keyed && answer.kind === 'unknown') {
        this.unknown += 1;
        return;
      }
      if (answer.kind === 'refused') this.refused += 1;
      await delay(50);
    }
  }

  async #postOnce(body: object): Promise<Answer> {
    const { url } = this.#random.pick(this.#system.apis);
    try {
      const response = await this.#system.http.fetch(`${url}/v1/events`, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.#system.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(POST_TIMEOUT_MS),
      });
      const answer = (await response.json()) as { id: string; code?: string };
      if (response.status === 202) return { kind: 'accepted', id: answer.id };
      if (response.status >= 500) return { kind: 'unknown' };
      throw new Error(`POST /v1/events: ${response.status} ${JSON.stringify(answer)}`);
    } catch (error) {
      const { cause, name } = error as { cause?: { code?: string }; name?: string };
      if (cause?.code === 'ECONNREFUSED') return { kind: 'refused' };
      if (cause !== undefined || name === 'TimeoutError' || name === 'SyntaxError')
        return { kind: 'unknown' };
      throw error;
    }
  }
}
