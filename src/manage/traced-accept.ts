import { Problem } from '../domain/problem.ts';
import { withTraceContext } from '../domain/trace-context.ts';
import type { Accepted, Acceptor, NewEvent } from '../ingest/index.ts';
import type { Tracer } from '../telemetry/tracing.ts';

/** How events are accepted: where there is a tracer, each in a span of its own, whose context is stored with it. */
export function acceptingWith(
  tracer: Tracer | null,
  acceptor: Pick<Acceptor, 'accept'>,
): (event: NewEvent) => Promise<Accepted> {
  if (tracer === null) return (event) => acceptor.accept(event);
  return async (event) => {
    const span = tracer.publishing(event);
    const { context } = span;
    try {
      const accepted = await acceptor.accept(
        context === null ? event : { ...event, headers: withTraceContext(event.headers, context) },
      );
      span.accepted(accepted);
      return accepted;
    } catch (error) {
      span.refused(error instanceof Problem ? error.code : 'internal');
      throw error;
    }
  };
}
