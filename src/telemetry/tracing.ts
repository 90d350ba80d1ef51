/**
 * Traces of events, for an OpenTelemetry collector. The stages get this interface, or null if tracing is off (the
 * default), which costs nothing. The implementation (otel-tracer.ts) is loaded only if tracing is on.
 *
 *   the producer's span
 *     └ publish               the request, until it is answered
 *         ├ accept wait       until the batch began; for the outbox, since it was published
 *         ├ accept commit     the one commit of its batch
 *         ├ lane wait         per attempt: since the delivery could have been sent
 *         └ attempt           the request to the receiver; its headers name this span as the parent
 *
 * The headers of the event carry the context between processes and through the database.
 */
import type { Endpoint } from '../domain/endpoint.ts';
import type { EventContent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import type { AttemptOutcome } from '../domain/outcome.ts';
import { type TraceContext, withTraceContext } from '../domain/trace-context.ts';
import type { RequestSender } from '../ports/stages.ts';

export interface TracedCommit {
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
  /** The time at which it became due. */
  readonly waitingSince: number;
}

export interface PublishSpan {
  /** The context to pass on. Null: the event is not traced, and the producer's context is passed on unchanged. */
  readonly context: TraceContext | null;
  endAccepted(event: { readonly id: Uuid; readonly deliveries: number; readonly duplicate: boolean }): void;
  /** `code`: the code of the problem that the producer got. */
  endRefused(code: string): void;
}

export interface AttemptSpan {
  readonly context: TraceContext | null;
  end(outcome: AttemptOutcome): void;
}

export interface Tracer {
  startPublish(event: Pick<EventContent, 'tenant' | 'type' | 'headers'>): PublishSpan;
  recordStored(event: TracedCommit): void;
  startAttempt(attempt: TracedAttempt): AttemptSpan;
  /** Exports the remaining spans. */
  stop(): Promise<void>;
}

/** Gives every attempt of `sender` its own span, whose context goes to the receiver. */
export function traceSending(tracer: Tracer, sender: RequestSender): RequestSender {
  return {
    send(request, done) {
      const span = tracer.startAttempt(request);
      const { event } = request;
      const traced =
        span.context === null
          ? request
          : { ...request, event: { ...event, headers: withTraceContext(event.headers, span.context) } };
      sender.send(traced, (outcome) => {
        span.end(outcome);
        done(outcome);
      });
    },
  };
}
