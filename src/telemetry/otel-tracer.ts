/** The tracer on OpenTelemetry. Only this module imports OpenTelemetry, and it is loaded only if tracing is on. */
import {
  type Attributes,
  type Context,
  createTraceState,
  DiagLogLevel,
  diag,
  type Tracer as OpenTelemetryTracer,
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
import type { EventContent } from '../domain/event.ts';
import { eventIdOfDelivery, publicId, timeOfId, type Uuid } from '../domain/ids.ts';
import { type TraceContext, traceContextOf } from '../domain/trace-context.ts';
import type { AttemptSpan, PublishSpan, TracedAttempt, TracedCommit, Tracer } from './tracing.ts';

export interface OtelOptions {
  /** URL of the collector; traces go to its /v1/traces. */
  readonly endpoint: string;
  /** Share of traced events, among those without a decision of the producer. */
  readonly sampleRate: number;
  readonly flushMs: number;
  readonly serviceName: string;
  readonly version: string;
  readonly instance: string;
  readonly clock: Clock;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** Further spans are dropped, so that an unreachable collector costs traces but no memory. */
const MAX_WAITING_SPANS = 20_000;
const SPANS_PER_REQUEST = 512;
const EXPORT_TIMEOUT_MS = 5_000;
/** A stop does not wait longer than this for the collector. */
const STOP_WITHIN_MS = 2_000;
/** Number of events whose commit time is kept. For older ones the lane wait counts from acceptance. */
const MAX_COMMIT_TIMES = 10_000;

export function createOtelTracer(options: OtelOptions): Tracer {
  diag.setLogger(
    { ...SILENT, error: (message) => options.onProblem('export traces', new Error(messageOf(message))) },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  );
  return new OtelTracer(createProvider(options), options);
}

function createProvider(options: OtelOptions): NodeTracerProvider {
  const exporter = new OTLPTraceExporter({
    url: `${options.endpoint}/v1/traces`,
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  return new NodeTracerProvider({
    resource: resourceOf({
      'service.name': options.serviceName,
      'service.version': options.version,
      'service.instance.id': options.instance,
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(options.sampleRate) }),
    spanProcessors: [
      new BatchSpanProcessor(exporter, {
        scheduledDelayMillis: options.flushMs,
        maxQueueSize: MAX_WAITING_SPANS,
        maxExportBatchSize: SPANS_PER_REQUEST,
        exportTimeoutMillis: EXPORT_TIMEOUT_MS,
      }),
    ],
  });
}

class OtelTracer implements Tracer {
  readonly #provider: NodeTracerProvider;
  readonly #options: OtelOptions;
  readonly #clock: Clock;
  readonly #spans: OpenTelemetryTracer;
  readonly #commitTimes = new Map<Uuid, number>();

  constructor(provider: NodeTracerProvider, options: OtelOptions) {
    this.#provider = provider;
    this.#options = options;
    this.#clock = options.clock;
    // Not registered globally, so that no context is propagated through every promise.
    this.#spans = provider.getTracer('posthorn', options.version);
  }

  startPublish({ tenant, type, headers }: Pick<EventContent, 'tenant' | 'type' | 'headers'>): PublishSpan {
    const clock = this.#clock;
    const parent = contextOf(traceContextOf(headers));
    const span = this.#start('posthorn publish', SpanKind.SERVER, parent, clock.now(), {
      'posthorn.tenant': tenant,
      'posthorn.event_type': type,
    });
    return {
      context: contextFor(span),
      endAccepted({ id, deliveries, duplicate }) {
        span.setAttributes({
          'posthorn.event_id': publicId('evt', id),
          'posthorn.deliveries': deliveries,
          'posthorn.duplicate': duplicate,
        });
        span.end(clock.now());
      },
      endRefused(code) {
        span.setAttribute('error.type', code);
        span.setStatus({ code: SpanStatusCode.ERROR, message: code });
        span.end(clock.now());
      },
    };
  }

  recordStored({ id, headers, batchStartedAt, committedAt }: TracedCommit): void {
    const parent = contextOf(traceContextOf(headers));
    if (parent === ROOT_CONTEXT) return;
    const attributes = { 'posthorn.event_id': publicId('evt', id) };
    this.#recordSpan('posthorn accept wait', parent, timeOfId(id), batchStartedAt, attributes);
    this.#recordSpan('posthorn accept commit', parent, batchStartedAt, committedAt, attributes);
    this.#commitTimes.set(id, committedAt);
    if (this.#commitTimes.size > MAX_COMMIT_TIMES)
      this.#commitTimes.delete(this.#commitTimes.keys().next().value!);
  }

  startAttempt(attempt: TracedAttempt): AttemptSpan {
    const { endpoint, event, deliveryId, number, waitingSince } = attempt;
    const clock = this.#clock;
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
      const committedAt = number === 1 ? this.#commitTimes.get(eventIdOfDelivery(deliveryId)) : undefined;
      const from = Math.max(waitingSince, committedAt ?? 0);
      this.#recordSpan('posthorn lane wait', parent, from, now, attributes);
    }
    // Only the host: a path may contain a token.
    const span = this.#start('posthorn attempt', SpanKind.CLIENT, parent, now, {
      ...attributes,
      'http.request.method': 'POST',
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
    });
    return {
      context: contextFor(span),
      end({ statusCode, error, withdrawn }) {
        if (statusCode !== null) span.setAttribute('http.response.status_code', statusCode);
        if (error !== null) {
          span.setAttribute('error.type', error.class);
          span.setStatus({ code: SpanStatusCode.ERROR, message: error.class });
        }
        if (withdrawn) span.setAttribute('posthorn.withdrawn', true);
        span.end(clock.now());
      },
    };
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(STOP_WITHIN_MS, resolve);
      void this.#provider
        .shutdown()
        .catch((error) => this.#options.onProblem('export traces', error))
        .finally(() => {
          cancel();
          resolve();
        });
    });
  }

  #start(name: string, kind: SpanKind, parent: Context, startTime: number, attributes: Attributes): Span {
    const root = parent === ROOT_CONTEXT;
    return this.#spans.startSpan(name, { kind, startTime, attributes, root }, parent);
  }

  /** Records a span that has already ended. */
  #recordSpan(name: string, parent: Context, from: number, to: number, attributes: Attributes): void {
    this.#start(name, SpanKind.INTERNAL, parent, Math.min(from, to), attributes).end(to);
  }
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

/** Returns null for a span that is not recorded. */
function contextFor(span: Span): TraceContext | null {
  if (!span.isRecording()) return null;
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    tracestate: traceState?.serialize() || null,
  };
}

/** Only what the exporter needs of a resource: the package that creates resources is not a dependency of ours. */
function resourceOf(attributes: Record<string, string>): NonNullable<NodeTracerConfig['resource']> {
  const resource = {
    attributes,
    merge: () => resource,
    getRawAttributes: () => Object.entries(attributes),
  } as NonNullable<NodeTracerConfig['resource']>;
  return resource;
}

/** Extracts the message: the library reports the fields of an error as JSON. */
function messageOf(report: string): string {
  try {
    return JSON.parse(report).message ?? report;
  } catch {
    return report;
  }
}

const nothing = (): void => {};
const SILENT = { error: nothing, warn: nothing, info: nothing, debug: nothing, verbose: nothing };
