/** The tracer on OpenTelemetry. The only module that knows of it, and loaded only when tracing is on. */
import {
  type Attributes,
  type Context,
  createTraceState,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  BatchSpanProcessor,
  type NodeTracerConfig,
  NodeTracerProvider,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-node';
import type { Clock } from '../domain/clock.ts';
import { eventIdOfDelivery, publicId, timeOfId, type Uuid } from '../domain/ids.ts';
import { type TraceContext, traceContextOf } from '../domain/trace-context.ts';
import type { Tracer } from './tracing.ts';

export interface OtelOptions {
  /** Of the collector; traces go to its /v1/traces. */
  readonly endpoint: string;
  /** Of those that do not come with a decision of the producer's. */
  readonly sampleRate: number;
  readonly flushMs: number;
  readonly serviceName: string;
  readonly version: string;
  readonly instance: string;
  readonly clock: Clock;
  readonly problem: (what: string, error: unknown) => void;
}

/** More than this and spans are dropped: a collector that is away costs traces, never memory. */
const MAX_WAITING_SPANS = 20_000;
const SPANS_PER_REQUEST = 512;
const EXPORT_TIMEOUT_MS = 5_000;
/** The end of the process does not wait for a collector that is away. */
const STOP_WITHIN_MS = 2_000;
/** Of so many events it is known when they were committed; beyond that a lane's wait is counted from acceptance. */
const REMEMBERED_COMMITS = 10_000;

export function createOtelTracer(options: OtelOptions): Tracer {
  const { clock } = options;
  diag.setLogger(
    { ...SILENT, error: (message) => options.problem('export traces', new Error(wordsOf(message))) },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
  const provider = new NodeTracerProvider({
    resource: resourceOf({
      'service.name': options.serviceName,
      'service.version': options.version,
      'service.instance.id': options.instance,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sampleRate) }),
    spanProcessors: [
      new BatchSpanProcessor(
        new OTLPTraceExporter({ url: `${options.endpoint}/v1/traces`, timeoutMillis: EXPORT_TIMEOUT_MS }),
        {
          scheduledDelayMillis: options.flushMs,
          maxQueueSize: MAX_WAITING_SPANS,
          maxExportBatchSize: SPANS_PER_REQUEST,
          exportTimeoutMillis: EXPORT_TIMEOUT_MS,
        },
      ),
    ],
  });
  // Not registered: nothing global, and no context that follows every promise around.
  const tracer = provider.getTracer('posthorn', options.version);
  const commits = new Map<Uuid, number>();

  const start = (
    name: string,
    kind: SpanKind,
    parent: Context,
    startTime: number,
    attributes: Attributes,
  ): Span => tracer.startSpan(name, { kind, startTime, attributes, root: parent === ROOT_CONTEXT }, parent);
  /** One that is over already. */
  const note = (name: string, parent: Context, from: number, to: number, attributes: Attributes): void =>
    start(name, SpanKind.INTERNAL, parent, Math.min(from, to), attributes).end(to);

  return {
    publishing({ tenant, type, headers }) {
      const parent = contextOf(traceContextOf(headers));
      const span = start('posthorn publish', SpanKind.SERVER, parent, clock.now(), {
        'posthorn.tenant': tenant,
        'posthorn.event_type': type,
      });
      return {
        context: contextFor(span),
        accepted({ id, deliveries, duplicate }) {
          span.setAttributes({
            'posthorn.event_id': publicId('evt', id),
            'posthorn.deliveries': deliveries,
            'posthorn.duplicate': duplicate,
          });
          span.end(clock.now());
        },
        refused(code) {
          span.setAttribute('error.type', code);
          span.setStatus({ code: SpanStatusCode.ERROR, message: code });
          span.end(clock.now());
        },
      };
    },

    stored({ id, headers, batchStartedAt, committedAt }) {
      const parent = contextOf(traceContextOf(headers));
      if (parent === ROOT_CONTEXT) return;
      const attributes = { 'posthorn.event_id': publicId('evt', id) };
      note('posthorn accept wait', parent, timeOfId(id), batchStartedAt, attributes);
      note('posthorn accept commit', parent, batchStartedAt, committedAt, attributes);
      commits.set(id, committedAt);
      if (commits.size > REMEMBERED_COMMITS) commits.delete(commits.keys().next().value!);
    },

    sending({ endpoint, event, deliveryId, number, waitingSince }) {
      const now = clock.now();
      const parent = contextOf(traceContextOf(event.headers));
      const { hostname, port, protocol } = new URL(endpoint.url);
      const attributes: Attributes = {
        'posthorn.event_id': publicId('evt', event.id),
        'posthorn.delivery_id': publicId('dlv', deliveryId),
        'posthorn.endpoint_id': publicId('ep', endpoint.id),
        'posthorn.tenant': endpoint.tenant,
        'posthorn.event_type': event.type,
        'posthorn.attempt': number,
      };
      if (parent !== ROOT_CONTEXT) {
        const committedAt = number === 1 ? commits.get(eventIdOfDelivery(deliveryId)) : undefined;
        note('posthorn lane wait', parent, Math.max(waitingSince, committedAt ?? 0), now, attributes);
      }
      // The host alone: a path may hold a token.
      const span = start('posthorn attempt', SpanKind.CLIENT, parent, now, {
        ...attributes,
        'http.request.method': 'POST',
        'server.address': hostname,
        'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      });
      return {
        context: contextFor(span),
        ended({ statusCode, error, withdrawn }) {
          if (statusCode !== null) span.setAttribute('http.response.status_code', statusCode);
          if (error !== null) {
            span.setAttribute('error.type', error.class);
            span.setStatus({ code: SpanStatusCode.ERROR, message: error.class });
          }
          if (withdrawn) span.setAttribute('posthorn.withdrawn', true);
          span.end(clock.now());
        },
      };
    },

    stop: () =>
      new Promise((resolve) => {
        const cancel = clock.after(STOP_WITHIN_MS, resolve);
        void provider
          .shutdown()
          .catch((error) => options.problem('export traces', error))
          .finally(() => {
            cancel();
            resolve();
          });
      }),
  };
}

function contextOf(context: TraceContext | null): Context {
  if (context === null) return ROOT_CONTEXT;
  const [, traceId, spanId, flags] = context.traceparent.split('-');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: traceId!,
    spanId: spanId!,
    traceFlags: Number.parseInt(flags!, 16),
    isRemote: true,
    ...(context.tracestate !== null && { traceState: createTraceState(context.tracestate) }),
  });
}

/** Null for a span that is not recorded: nobody would find it. */
function contextFor(span: Span): TraceContext | null {
  if (!span.isRecording()) return null;
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    tracestate: traceState?.serialize() || null,
  };
}

/** As much of one as the exporter asks for: the package that makes them is not among our dependencies. */
function resourceOf(attributes: Record<string, string>): NonNullable<NodeTracerConfig['resource']> {
  const resource = {
    attributes,
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  } as NonNullable<NodeTracerConfig['resource']>;
  return resource;
}

/** What the library reports is an error's fields as JSON. */
function wordsOf(report: string): string {
  try {
    return JSON.parse(report).message ?? report;
  } catch {
    return report;
  }
}

const nothing = (): void => {};
const SILENT = { error: nothing, warn: nothing, info: nothing, debug: nothing, verbose: nothing };
