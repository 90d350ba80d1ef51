/**
 * Where an event's time went, for a collector of traces. The stages know this interface, or null: off, which is the
 * default, and costs them nothing. What stands behind it is loaded only when it is switched on (otel-tracer.ts).
 *
 *   the producer's span
 *     └ publish               the request, until it is answered
 *         ├ accept wait       until its batch was begun; for the outbox, since it was published
 *         ├ accept commit     the one commit of its batch
 *         ├ lane wait         of each attempt: since it could have been sent
 *         └ attempt           the request to the receiver, who is told this span as its parent
 *
 * Between processes, and across the database, the context travels in the headers of the event.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import { type TraceContext, withTraceContext } from '../domain/trace-context.ts';

export interface StoredEvent {
  readonly id: Uuid;
  readonly headers: EventContent['headers'];
  readonly batchStartedAt: number;
  readonly committedAt: number;
}

export interface TracedAttempt {
  readonly endpoint: Endpoint;
  readonly event: EventContent;
  readonly deliveryId: Uuid;
  readonly number: number;
  /** Since when it was due. */
  readonly waitingSince: number;
}

export interface PublishSpan {
  /** What is to be carried from here on. Null: this one is not traced, what the producer sent is carried as it is. */
  readonly context: TraceContext | null;
  accepted(event: { readonly id: Uuid; readonly deliveries: number; readonly duplicate: boolean }): void;
  /** `code`: of the problem, as the producer was told it. */
  refused(code: string): void;
}

export interface AttemptSpan {
  readonly context: TraceContext | null;
  ended(outcome: AttemptOutcome): void;
}

export interface Tracer {
  publishing(event: Pick<EventContent, 'tenant' | 'type' | 'headers'>): PublishSpan;
  stored(event: StoredEvent): void;
  sending(attempt: TracedAttempt): AttemptSpan;
  /** Sends what has not been sent yet. */
  stop(): Promise<void>;
}

type Send<Request> = (request: Request, done: (outcome: AttemptOutcome) => void) => void;

/** Every attempt in a span of its own, whose context goes to the receiver. */
export function traceSending<Request extends TracedAttempt>(
  tracer: Tracer,
  send: Send<Request>,
): Send<Request> {
  return (request, done) => {
    const span = tracer.sending(request);
    const { event } = request;
    const traced =
      span.context === null
        ? request
        : { ...request, event: { ...event, headers: withTraceContext(event.headers, span.context) } };
    send(traced, (outcome) => {
      span.ended(outcome);
      done(outcome);
    });
  };
}
