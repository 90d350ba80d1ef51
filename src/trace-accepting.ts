import { Problem } from './domain/problem.ts';
import { withTraceContext } from './domain/trace-context.ts';
import type { Acceptor } from './ingest/index.ts';
import type { Tracer } from './telemetry/tracing.ts';

/** Gives every event that `acceptor` accepts its own span, whose context is stored with the event. */
export function traceAccepting(tracer: Tracer, acceptor: Pick<Acceptor, 'accept'>): Pick<Acceptor, 'accept'> {
  return {
    async accept(event) {
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
    },
  };
}
