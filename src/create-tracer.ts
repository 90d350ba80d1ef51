import type { AppConfig } from './app.ts';
import { readVersion } from './config/index.ts';
import type { Clock } from './domain/clock.ts';
import type { Tracer } from './telemetry/tracing.ts';

/** Loads OpenTelemetry only if tracing is on. Returns null if it is off. */
export async function createTracer(
  config: AppConfig,
  clock: Clock,
  instance: string,
  onProblem: (what: string, error: unknown) => void,
): Promise<Tracer | null> {
  if (config.tracing === 'off') return null;
  const { createOtelTracer } = await import('./telemetry/otel-tracer.ts');
  return createOtelTracer({
    endpoint: config.tracingEndpoint,
    sampleRate: config.tracingSampleRate,
    flushMs: config.tracingFlushMs,
    serviceName: config.tracingServiceName,
    version: readVersion(),
    instance,
    clock,
    onProblem,
  });
}
