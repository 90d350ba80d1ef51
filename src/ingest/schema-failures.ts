/**
 * Records payloads that did not match their schema, for people to read. It is a sample: a process records a bounded number
 * per second, and drops what it cannot write. Metrics count all of them, and each stored event is flagged.
 */
import type { Clock } from '../domain/clock.ts';
import type { NewEvent } from '../domain/event.ts';
import { newId, type Uuid } from '../domain/ids.ts';
import type { FieldError } from '../domain/problem.ts';
import type { CatalogueStore, SchemaFailure } from '../ports/catalogue-store.ts';

export interface SchemaFailureMetrics {
  schemaFailed(eventType: string, result: 'flagged' | 'refused'): void;
}

export interface SchemaFailuresOptions {
  readonly store: Pick<CatalogueStore, 'recordFailures'>;
  readonly clock: Clock;
  readonly metrics?: SchemaFailureMetrics | undefined;
  readonly onProblem: (what: string, error: unknown) => void;
}

const WRITE_AFTER_MS = 200;
const PER_SECOND = 100;

export class SchemaFailures {
  readonly #options: SchemaFailuresOptions;
  #waiting: SchemaFailure[] = [];
  #second = 0;
  #recorded = 0;
  #isScheduled = false;

  constructor(options: SchemaFailuresOptions) {
    this.#options = options;
  }

  onRefused(event: NewEvent, error: FieldError): void {
    this.#options.metrics?.schemaFailed(event.type, 'refused');
    this.#record(event, error, null);
  }

  /** Call this when a flagged event is stored. */
  onFlagged(event: NewEvent, eventId: Uuid): void {
    this.#options.metrics?.schemaFailed(event.type, 'flagged');
    this.#record(event, event.schemaErrors![0]!, eventId);
  }

  #record({ tenant, type, schemaVersion }: NewEvent, error: FieldError, eventId: Uuid | null): void {
    const { clock } = this.#options;
    const second = Math.floor(clock.monotonic() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#recorded = 0;
    }
    if (this.#recorded >= PER_SECOND) return;
    this.#recorded += 1;
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
