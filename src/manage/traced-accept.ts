import { Problem } from '../domain/problem.ts';
import { withTraceContext } from '../domain/trace-context.ts';
import type { AcceptAnswer, Acceptor, NewEvent } from '../ingest/index.ts';
import type { Tracer } from '../telemetry/tracing.ts';

export type Accept = (event: NewEvent) => Promise<AcceptAnswer>;

/** `acceptor.accept`, with a span per event if there is a tracer. The context of the span is stored with the event. */
export function createTracedAccept(tracer: Tracer | null, acceptor: Pick<Acceptor, 'accept'>): Accept {
  if (tracer === null) return (event) => acceptor.accept(event);
  return async (event) => {
    const span = tracer.startPublish(event);
    const { context } = span;
    try {
      const accepted = await acceptor.accept(
        context === null ? event : { ...event, headers: withTraceContext(event.headers, context) },
      );
      span.endAccepted(accepted);
      return accepted;
    } catch (error) {
      span.endRefused(error instanceof Problem ? error.code : 'internal');
      throw error;
    }
  };
}
