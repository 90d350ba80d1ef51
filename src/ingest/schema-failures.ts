/**
 * Records payloads that did not match their schema, for people to read. The records are a sample: in each window of time, a
 * process records a bounded number, per tenant and per event type too. It drops the others, and those that the store does
 * not take. Metrics count all of them, and each stored event is flagged.
 */
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newId, type Uuid } from '../domain/ids.ts';
import type { FieldError } from '../domain/problem.ts';
import type { CatalogueStore, SchemaFailure } from '../ports/catalogue-store.ts';

export interface SchemaFailureMetrics {
  onSchemaFailed(eventType: string, result: 'flagged' | 'refused'): void;
}

export interface SchemaFailuresOptions {
  readonly store: Pick<CatalogueStore, 'recordFailures'>;
  readonly clock: Clock;
  readonly metrics?: SchemaFailureMetrics | undefined;
  readonly onProblem: (what: string, error: unknown) => void;
}

const WRITE_AFTER_MS = 200;
const WINDOW_MS = 5_000;
const PER_WINDOW = 500;
const PER_TENANT = 25;
const PER_TENANT_AND_TYPE = 5;

export class SchemaFailures {
  readonly #options: SchemaFailuresOptions;
  #waiting: SchemaFailure[] = [];
  #window = 0;
  #recorded = 0;
  /** Failures recorded in this window, by tenant, and by tenant and event type. */
  readonly #counts = new Map<string, number>();
  #isScheduled = false;

  constructor(options: SchemaFailuresOptions) {
    this.#options = options;
  }

  onRefused(event: NewEvent, error: FieldError): void {
    this.#options.metrics?.onSchemaFailed(event.type, 'refused');
    this.#record(event, error, null);
  }

  /** Call this when a flagged event is stored. */
  onFlagged(event: NewEvent, eventId: Uuid): void {
    this.#options.metrics?.onSchemaFailed(event.type, 'flagged');
    this.#record(event, event.schemaErrors![0]!, eventId);
  }

  #record({ tenant, type, schemaVersion }: NewEvent, error: FieldError, eventId: Uuid | null): void {
    const { clock } = this.#options;
    if (!this.#hasRoom(tenant, type)) return;
    this.#waiting.push({
      id: newId(clock.now()),
      tenant,
      eventType: type,
      version: schemaVersion,
      eventId,
      ...error,
    });
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    clock.after(WRITE_AFTER_MS, () => void this.#write());
  }

  #hasRoom(tenant: string, type: string): boolean {
    const window = Math.floor(this.#options.clock.monotonic() / WINDOW_MS);
    if (window !== this.#window) {
      this.#window = window;
      this.#recorded = 0;
      this.#counts.clear();
    }
    const ofType = `${tenant}\n${type}`;
    const [perTenant, perType] = [this.#counts.get(tenant) ?? 0, this.#counts.get(ofType) ?? 0];
    if (this.#recorded >= PER_WINDOW || perTenant >= PER_TENANT || perType >= PER_TENANT_AND_TYPE)
      return false;
    this.#recorded += 1;
    this.#counts.set(tenant, perTenant + 1).set(ofType, perType + 1);
    return true;
  }

  async #write(): Promise<void> {
    this.#isScheduled = false;
    const failures = this.#waiting;
    this.#waiting = [];
    try {
      await this.#options.store.recordFailures(failures);
    } catch (error) {
      this.#options.onProblem('record payloads that do not match their schema', error);
    }
  }
}
