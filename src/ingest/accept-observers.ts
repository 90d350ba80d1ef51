/** Metrics, live tail and tracing of the accept stage. Their errors are caught, because the event is already stored. */
import type { Tracer } from '../telemetry/tracing.ts';
import type { Accepted, PendingEvent } from './pending-event.ts';

export interface AcceptMetrics {
  accepted(eventType: string, deliveries: number): void;
  /** An idempotency key was already in use. */
  repeated(): void;
  /** A batch was matched again because an endpoint had changed. */
  rematched(): void;
}

export interface AcceptObserverOptions {
  readonly metrics?: AcceptMetrics | undefined;
  /** The live tail. `open` is true while a client watches. */
  readonly tail?: { readonly open: boolean; accepted(event: Accepted): void } | undefined;
  readonly tracer?: Pick<Tracer, 'stored'> | null | undefined;
  readonly onFailed?: ((error: unknown) => void) | undefined;
}

export class AcceptObservers {
  readonly #options: AcceptObserverOptions;

  constructor(options: AcceptObserverOptions) {
    this.#options = options;
  }

  onRematched(): void {
    this.#options.metrics?.rematched();
  }

  onRepeated(): void {
    this.#options.metrics?.repeated();
  }

  onCommitted(batch: readonly PendingEvent[], batchStartedAt: number, committedAt: number): void {
    const { tracer, onFailed } = this.#options;
    if (tracer == null) return;
    try {
      for (const { id, event } of batch)
        tracer.stored({ id, headers: event.headers, batchStartedAt, committedAt });
    } catch (error) {
      onFailed?.(error);
    }
  }

  onAccepted(accepted: Accepted): void {
    const { metrics, tail, onFailed } = this.#options;
    metrics?.accepted(accepted.type, accepted.deliveries);
    if (!tail?.open) return;
    try {
      tail.accepted(accepted);
    } catch (error) {
      onFailed?.(error);
    }
  }
}
