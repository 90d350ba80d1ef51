/** Metrics, live tail and tracing of the accept stage. Their errors are caught, because the event is already stored. */
import type { Tracer } from '../telemetry/tracing.ts';
import type { AcceptAnswer, PendingEvent } from './pending-event.ts';

export interface AcceptMetrics {
  onAccepted(eventType: string, deliveries: number): void;
  /** An idempotency key was already in use. */
  onRepeated(): void;
  /** A batch was matched again because an endpoint had changed. */
  onRematched(): void;
}

export interface AcceptObserverOptions {
  readonly metrics?: AcceptMetrics | undefined;
  /** The live tail. `isWatched` is true while a client watches. */
  readonly tail?: { readonly isWatched: boolean; onAccepted(answer: AcceptAnswer): void } | undefined;
  readonly tracer?: Pick<Tracer, 'recordStored'> | null | undefined;
  readonly onFailed?: ((error: unknown) => void) | undefined;
}

export class AcceptObservers {
  readonly #options: AcceptObserverOptions;

  constructor(options: AcceptObserverOptions) {
    this.#options = options;
  }

  onRematched(): void {
    this.#options.metrics?.onRematched();
  }

  onRepeated(): void {
    this.#options.metrics?.onRepeated();
  }

  onCommitted(batch: readonly PendingEvent[], batchStartedAt: number, committedAt: number): void {
    const { tracer, onFailed } = this.#options;
    if (tracer == null) return;
    try {
      for (const { id, event } of batch)
        tracer.recordStored({ id, headers: event.headers, batchStartedAt, committedAt });
    } catch (error) {
      onFailed?.(error);
    }
  }

  onAccepted(answer: AcceptAnswer): void {
    const { metrics, tail, onFailed } = this.#options;
    metrics?.onAccepted(answer.type, answer.deliveries);
    if (!tail?.isWatched) return;
    try {
      tail.onAccepted(answer);
    } catch (error) {
      onFailed?.(error);
    }
  }
}
