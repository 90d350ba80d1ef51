/** Accepts events from requests: admits them, collects them into batches, and resolves after the commit. */
import { Batcher, type BatcherOptions } from '../domain/batcher.ts';
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import type { Admission, QueueLevel } from './admission.ts';
import type { BatchWriter } from './batch-writer.ts';
import { BlockedPath } from './blocked-path.ts';
import { type Accepted, fingerprintOf, type PendingEvent } from './pending-event.ts';
import type { SchemaCheck } from './schema-check.ts';
import type { SchemaFailures } from './schema-failures.ts';
import { WidePath } from './wide-path.ts';

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
  readonly #wide: WidePath;
  readonly #blocked: BlockedPath;
  readonly #bytesOf = ({ data }: NewEvent): number => data.length + EVENT_OVERHEAD_BYTES;
  /** Events whose payload is being checked against a schema, which may have to be loaded first. */
  #checkedItems = 0;
  #checkedBytes = 0;

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
    const wide = new WidePath({
      maxItems: batchRows,
      bytesOf,
      writeFirst: (batch) => writer.writeFirst(batch, { mayBeStored: false, blocked }),
    });
    this.#wide = wide;
    this.#blocked = blocked;
    this.#batcher = new Batcher<PendingEvent>({
      maxItems: batchRows,
      maxBytes: batchBytes,
      bytesOf,
      write: (batch) => writer.write(batch, { mayBeStored: false, wide, blocked }),
      onWritten: onBatchWritten,
    });
  }

  get waitingEvents(): number {
    const { waitingItems } = this.#batcher;
    return this.#checkedItems + waitingItems + this.#wide.waitingItems + this.#blocked.waitingItems;
  }

  /** Tenants on the wide path may fill half of the queue: what waits there counts twice for them. */
  #levelFor(tenant: string): QueueLevel {
    const weight = this.#wide.has(tenant) ? 2 : 1;
    return {
      waitingItems:
        this.#checkedItems +
        this.#batcher.waitingItems +
        this.#blocked.waitingItems +
        weight * this.#wide.waitingItems,
      waitingBytes:
        this.#checkedBytes +
        this.#batcher.waitingBytes +
        this.#blocked.waitingBytes +
        weight * this.#wide.waitingBytes,
    };
  }

  /** Resolves when the event and its deliveries are durable. Throws a `Problem` if the event is rejected. */
  async accept(published: NewEvent): Promise<Accepted> {
    this.#admission.checkLoad(published, this.#levelFor(published.tenant));
    const checked = this.#schemas?.check.check(published, { canRefuse: true }) ?? published;
    const event = checked instanceof Promise ? await this.#countWhileChecked(published, checked) : checked;
    if (event.endpointIds !== null) await this.#admission.checkTargets(event);
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

  async #countWhileChecked(published: NewEvent, checked: Promise<NewEvent>): Promise<NewEvent> {
    const bytes = this.#bytesOf(published);
    this.#checkedItems += 1;
    this.#checkedBytes += bytes;
    try {
      return await checked;
    } finally {
      this.#checkedItems -= 1;
      this.#checkedBytes -= bytes;
    }
  }

  /** Resolves when every admitted event has been answered. */
  async waitUntilIdle(): Promise<void> {
    await this.#batcher.waitUntilIdle();
    await this.#wide.waitUntilIdle();
    await this.#blocked.waitUntilIdle();
  }
}
