/** W3C trace context in headers. Posthorn passes it on even if this process does not trace. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate: string | null;
}

type Headers = Readonly<Record<string, string>>;

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** The specification requires at least 512 characters to be passed on. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const NAMES = new Set(['traceparent', 'tracestate']);

/** Returns null if there is no valid context. The specification says to ignore an invalid one. */
export function readTraceContext(traceparent: unknown, tracestate: unknown): TraceContext | null {
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return null;
  const hasState = typeof tracestate === 'string' && TRACESTATE.test(tracestate);
  return { traceparent, tracestate: hasState ? tracestate : null };
}

/** Finds the context in the headers of an event. Names may be in any case. */
export function traceContextOf(headers: Headers | null): TraceContext | null {
  if (headers === null) return null;
  const found: Record<string, string> = {};
  for (const name in headers) {
    const lower = name.toLowerCase();
    if (NAMES.has(lower)) found[lower] = headers[name]!;
  }
  return readTraceContext(found.traceparent, found.tracestate);
}

/** Returns the headers with this context in place of any other. */
export function withTraceContext(headers: Headers | null, context: TraceContext): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const name in headers) if (!NAMES.has(name.toLowerCase())) changed[name] = headers[name]!;
  changed.traceparent = context.traceparent;
  if (context.tracestate !== null) changed.tracestate = context.tracestate;
  return changed;
}
