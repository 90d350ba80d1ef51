/** Apart from the other tests of the tracer, because its client repeats a failed export for seconds. */
import { expect, test } from 'vitest';
import { systemClock } from '../../src/domain/clock.ts';
import { createOtelTracer } from '../../src/telemetry/otel-tracer.ts';

test('OBS-3: a tracer reports that the collector cannot be reached, and does not wait for it when it stops', async () => {
  let report: (error: unknown) => void = () => {};
  const reported = new Promise<unknown>((resolve) => {
    report = resolve;
  });
  const unconnected = createOtelTracer({
    // Nothing listens on this port.
    endpoint: 'http://127.0.0.1:9',
    sampleRate: 1,
    flushMs: 10,
    serviceName: 'test',
    version: '0',
    instance: 'test',
    clock: systemClock,
    onProblem: (_what, error) => report(error),
  });
  const end = (): void =>
    unconnected
      .startPublish({ tenant: 'acme', type: 'a.b', headers: null })
      .endAccepted({ id: '0190aaaa-0000-7000-8000-000000000000', deliveries: 1, duplicate: false });
  end();
  expect(String(await reported)).toMatch(/^Error: .*ECONNREFUSED 127\.0\.0\.1:9$/);
  end();
  const startedAt = performance.now();
  await unconnected.stop();
  expect(performance.now() - startedAt).toBeLessThan(4_000);
}, 20_000);
