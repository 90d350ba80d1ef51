import { describe, expect, it } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { createOtelTracer, type OtelOptions } from './otel-tracer.ts';

const SAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const tracer = (part: Partial<OtelOptions> = {}) =>
  createOtelTracer({
    // Nothing listens on this port.
    endpoint: 'http://127.0.0.1:9',
    sampleRate: 1,
    flushMs: 10,
    serviceName: 'test',
    version: '0',
    instance: 'test',
    clock: systemClock,
    onProblem: () => {},
    ...part,
  });
const event = (headers: Record<string, string> | null = null) => ({ tenant: 'acme', type: 'a.b', headers });

describe('OBS-3: the tracer', () => {
  it('samples events without a decision of the producer, and otherwise follows the decision', async () => {
    const none = tracer({ sampleRate: 0 });
    expect(none.startPublish(event()).context).toBe(null);
    expect(none.startPublish(event({ traceparent: SAMPLED })).context?.traceparent).toMatch(
      /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/,
    );
    const all = tracer();
    expect(all.startPublish(event()).context).not.toBe(null);
    expect(all.startPublish(event({ traceparent: `${SAMPLED.slice(0, -1)}0` })).context).toBe(null);
    await Promise.all([none.stop(), all.stop()]);
  });
});
