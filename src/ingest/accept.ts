/** Accepts events from requests: admits them, collects them into batches, and resolves after the commit. */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import { TurnoverMap } from '../domain/turnover-map.ts';
import type { Admission, QueueLevel } from './admission.ts';
import type { BatchWriter } from './batch-writer.ts';
import { BlockedPath } from './blocked-path.ts';
import { BulkPath } from './bulk-path.ts';
import { type Accepted, fingerprintOf, type PendingEvent } from './pending-event.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { SchemaFailures } from './schema-failures.ts';

export interface AcceptorOptions {
  readonly admission: Admission;
  readonly writer: Pick<BatchWriter, 'write' | 'writeFirst'>;
  /** Undefined: payloads are not checked. */
  readonly schemas?: { readonly check: SchemaCheck; readonly failures: SchemaFailures } | undefined;
  readonly clock: Clock;
  readonly batchRows: number;
  readonly batchBytes: number;
  /** Called after each batch, with its size and times. */
  readonly onBatchWritten?: BatcherOptions<unknown>['onWritten'];
}

/** Memory that a pending event takes besides its payload. */
const EVENT_OVERHEAD_BYTES = 256;

export class Acceptor {
  readonly #admission: Admission;
  readonly #clock: Clock;
  readonly #schemas: AcceptorOptions['schemas'];
  readonly #batcher: Batcher<PendingEvent>;
  readonly #bulk: BulkPath;
  readonly #blocked: BlockedPath;
  readonly #bytesOf = ({ data }: NewEvent): number => data.length + EVENT_OVERHEAD_BYTES;
  /** Events that are not answered yet, by tenant. */
  readonly #waiting = new TurnoverMap<string, { events: number; bytes: number }>();
  #waitingEvents = 0;
  #waitingBytes = 0;

  constructor(options: AcceptorOptions) {
    const { admission, writer, clock, batchRows, batchBytes, onBatchWritten } = options;
    this.#admission = admission;
    this.#schemas = options.schemas;
    this.#clock = clock;
    const bytesOf = ({ event }: PendingEvent): number => this.#bytesOf(event);
    const blocked: BlockedPath = new BlockedPath({
      clock,
      bytesOf,
      write: (batch, mayBeStored) => writer.write(batch, { mayBeStored, blocked, hasConflicted: true }),
    });
    const bulk = new BulkPath({
      clock,
      maxItems: batchRows,
      maxBytes: batchBytes,
      bytesOf,
      onWritten: onBatchWritten,
      writeFirst: (batch) => writer.writeFirst(batch, { mayBeStored: false, blocked }),
    });
    this.#bulk = bulk;
    this.#blocked = blocked;
    this.#batcher = new Batcher<PendingEvent>({
      maxItems: batchRows,
      maxBytes: batchBytes,
      bytesOf,
      divert: (batch) => bulk.divert(batch),
      write: (batch) => writer.write(batch, { mayBeStored: false, bulk, blocked }),
      onWritten: onBatchWritten,
    });
  }

  get waitingEvents(): number {
    return this.#waitingEvents;
  }

  /** How long the first event has waited for a shared commit to begin. */
  get longestWaitMs(): number {
    return this.#batcher.waitedMs;
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

  /** Resolves when the event and its deliveries are durable. Throws a `Problem` if the event is rejected. */
  async accept(published: NewEvent): Promise<Accepted> {
    const { tenant } = published;
    const bytes = this.#bytesOf(published);
    this.#admission.checkLoad(published, this.#levelFor(tenant));
    this.#countWaiting(tenant, 1, bytes);
    try {
      return await this.#store(published);
    } finally {
      this.#countWaiting(tenant, -1, -bytes);
    }
  }

  /** Runs without a pause until the event is in its batch, if its checks need none: events of a request keep their order. */
  async #store(published: NewEvent): Promise<Accepted> {
    const checked = this.#schemas?.check.check(published, { canRefuse: true }) ?? published;
    const event = checked instanceof Promise ? await checked : checked;
    const targets = event.endpointIds === null ? null : this.#admission.checkTargets(event);
    if (targets !== null) await targets;
    const id = newEventId(this.#clock.now());
    const fingerprint = fingerprintOf(event);
    const accepted = new Promise<Accepted>((resolve, reject) => {
      this.#batcher.add({
        event,
        id,
        fingerprint,
        receivedAt: this.#clock.monotonic(),
        committed: null,
        resolve,
        reject,
      });
    });
    if (event.schemaErrors !== undefined) {
      const { duplicate } = await accepted;
      if (!duplicate) this.#schemas?.failures.onFlagged(event, id);
    }
    return accepted;
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
  async waitUntilIdle(): Promise<void> {
    await this.#batcher.waitUntilIdle();
    await this.#bulk.waitUntilIdle();
    await this.#blocked.waitUntilIdle();
  }
}
