import { describe, expect, it } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { createOtelTracer, type OtelOptions } from './otel-tracer.ts';

const SAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const tracer = (part: Partial<OtelOptions> = {}) =>
  createOtelTracer({
    // Nobody listens there.
    endpoint: 'http://127.0.0.1:9',
    sampleRate: 1,
    flushMs: 10,
    serviceName: 'test',
    version: '0',
    instance: 'test',
    clock: systemClock,
    problem: () => {},
    ...part,
  });
const event = (headers: Record<string, string> | null = null) => ({ tenant: 'acme', type: 'a.b', headers });

describe('OBS-3: the tracer', () => {
  it('samples what the producer left open, and follows it where it decided', async () => {
    const none = tracer({ sampleRate: 0 });
    expect(none.publishing(event()).context).toBe(null);
    expect(none.publishing(event({ traceparent: SAMPLED })).context?.traceparent).toMatch(
      /^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$/,
    );
    const all = tracer();
    expect(all.publishing(event()).context).not.toBe(null);
    expect(all.publishing(event({ traceparent: `${SAMPLED.slice(0, -1)}0` })).context).toBe(null);
    await Promise.all([none.stop(), all.stop()]);
  });

  it('says that the collector is away, and does not wait for it at the end', async () => {
    let said: (error: unknown) => void = () => {};
    const told = new Promise<unknown>((resolve) => {
      said = resolve;
    });
    const lonely = tracer({ problem: (_what, error) => said(error) });
    const end = (): void =>
      lonely
        .publishing(event())
        .accepted({ id: '0190aaaa-0000-7000-8000-000000000000', deliveries: 1, duplicate: false });
    end();
    expect(String(await told)).toMatch(/^Error: .*ECONNREFUSED 127\.0\.0\.1:9$/);
    end();
    const startedAt = performance.now();
    await lonely.stop();
    expect(performance.now() - startedAt).toBeLessThan(4_000);
  }, 20_000);
});
