/** Accepts events from requests: admits them, collects them into batches, and resolves after the commit. */
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import { TurnoverMap } from '../domain/turnover-map.ts';
import { type AcceptQueue, bytesOf } from './accept-queue.ts';
import type { Admission, QueueLevel } from './admission.ts';
import { type AcceptAnswer, fingerprintOf } from './pending-event.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { SchemaFailures } from './schema-failures.ts';

export interface AcceptorOptions {
  readonly admission: Admission;
  readonly queue: AcceptQueue;
  /** Undefined: payloads are not checked. */
  readonly schemas?: { readonly check: SchemaCheck; readonly failures: SchemaFailures } | undefined;
  readonly clock: Clock;
}

export class Acceptor {
  readonly #admission: Admission;
  readonly #clock: Clock;
  readonly #schemas: AcceptorOptions['schemas'];
  readonly #queue: AcceptQueue;
  /** Events that are not answered yet, by tenant. */
  readonly #waiting = new TurnoverMap<string, { events: number; bytes: number }>();
  #waitingEvents = 0;
  #waitingBytes = 0;

  constructor({ admission, queue, schemas, clock }: AcceptorOptions) {
    this.#admission = admission;
    this.#queue = queue;
    this.#schemas = schemas;
    this.#clock = clock;
  }

  get waitingEvents(): number {
    return this.#waitingEvents;
  }

  /** How long the first event has waited for a shared commit to begin. */
  get longestWaitMs(): number {
    return this.#queue.waitedMs;
  }

  #levelFor(tenant: string): QueueLevel {
    const { events = 0, bytes = 0 } = this.#waiting.get(tenant) ?? {};
    return {
      events: this.#waitingEvents,
      bytes: this.#waitingBytes,
      eventsOfTenant: events,
      bytesOfTenant: bytes,
    };
  }

  /** Resolves when the event is durable: with its deliveries in PostgreSQL, or in the log. Throws a `Problem` if the event is rejected. */
  async accept(published: NewEvent): Promise<AcceptAnswer> {
    const { tenant } = published;
    const bytes = bytesOf(published);
    this.#admission.checkLoad(published, this.#levelFor(tenant));
    this.#countWaiting(tenant, 1, bytes);
    try {
      return await this.#store(published);
    } finally {
      this.#countWaiting(tenant, -1, -bytes);
    }
  }

  /** Does not await anything before the event is in its batch, unless a check must: so the events of a request keep their order. */
  async #store(published: NewEvent): Promise<AcceptAnswer> {
    const checked = this.#schemas?.check.check(published, { canRefuse: true }) ?? published;
    const event = checked instanceof Promise ? await checked : checked;
    const targets = event.endpointIds === null ? null : this.#admission.checkTargets(event);
    if (targets !== null) await targets;
    const id = newEventId(this.#clock.now());
    const fingerprint = fingerprintOf(event);
    const answered = new Promise<AcceptAnswer>((resolve, reject) => {
      this.#queue.add({
        event,
        id,
        fingerprint,
        receivedAt: this.#clock.monotonic(),
        committed: null,
        resolve,
        reject,
      });
    });
    if (event.schemaErrors !== undefined && this.#queue.isStore) {
      const { duplicate } = await answered;
      if (!duplicate) this.#schemas?.failures.onFlagged(event, id);
    }
    return answered;
  }

  #countWaiting(tenant: string, events: number, bytes: number): void {
    this.#waitingEvents += events;
    this.#waitingBytes += bytes;
    const waiting = this.#waiting.get(tenant);
    if (waiting === undefined) this.#waiting.set(tenant, { events, bytes });
    else if (waiting.events + events === 0) this.#waiting.delete(tenant);
    else {
      waiting.events += events;
      waiting.bytes += bytes;
    }
  }

  /** Resolves when every admitted event has been answered. */
  waitUntilIdle(): Promise<void> {
    return this.#queue.waitUntilIdle();
  }
}
