/** W3C trace context as it stands in headers: read, carried and sent on, whether this process traces or not. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate: string | null;
}

type Headers = Readonly<Record<string, string>>;

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** The specification asks for 512 characters to be carried. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const NAMES = new Set(['traceparent', 'tracestate']);

/** Null: there is none, or it is not one. The specification says to go on without it then. */
export function readTraceContext(traceparent: unknown, tracestate: unknown): TraceContext | null {
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return null;
  const hasState = typeof tracestate === 'string' && TRACESTATE.test(tracestate);
  return { traceparent, tracestate: hasState ? tracestate : null };
}

/** What a producer wrote into the headers of an event, in whatever case. */
export function traceContextOf(headers: Headers | null): TraceContext | null {
  if (headers === null) return null;
  const found: Record<string, string> = {};
  for (const name in headers) {
    const lower = name.toLowerCase();
    if (NAMES.has(lower)) found[lower] = headers[name]!;
  }
  return readTraceContext(found.traceparent, found.tracestate);
}

/** With this context instead of what there was of one. */
export function withTraceContext(headers: Headers | null, context: TraceContext): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const name in headers) if (!NAMES.has(name.toLowerCase())) changed[name] = headers[name]!;
  changed.traceparent = context.traceparent;
  if (context.tracestate !== null) changed.tracestate = context.tracestate;
  return changed;
}
