/**
 * Healthy endpoints beside slow ones of another tenant: 300 endpoints that answer 200 after 25 seconds, with 250
 * deliveries each that wait. Measures the healthy endpoints before the attack and during it.
 */
import {
  median,
  type Posthorn,
  percentile,
  type Receiver,
  registerEndpoints,
  runLoad,
  startPosthorn,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

const HEALTHY_ENDPOINTS = 50;
const HEALTHY_RATE = 200;

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly share: number;
}

export const noisySlowEndpoints: Bench = {
  name: 'noisy-slow-endpoints',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const slow = quick
      ? { endpoints: 300, events: 60, answerMs: 10_000, seconds: 8 }
      : { endpoints: 300, events: 250, answerMs: 25_000, seconds: 30 };
    const before: Latency[] = [];
    const during: Latency[] = [];
    for (let run = 1; run <= (quick ? 1 : Math.min(runs, 3)); run += 1) {
      onProgress(`run ${run}`);
      const posthorn = await startPosthorn(postgres);
      try {
        const types = await registerEndpoints(posthorn, receiver, {
          count: HEALTHY_ENDPOINTS,
          tenant: `healthy-${run}`,
        });
        const slowTypes = await registerEndpoints(posthorn, receiver, {
          count: slow.endpoints,
          fan: slow.endpoints,
          tenant: `slow-${run}`,
          path: (index) => `/slow/${slow.answerMs}/${index}`,
        });
        const measure = (seconds: number) =>
          measureHealthy(posthorn, receiver, { tenant: `healthy-${run}`, types, seconds });
        await measure(3);
        before.push(await measure(quick ? 5 : 10));
        await runLoad(posthorn, {
          events: slow.events,
          connections: 4,
          types: slowTypes,
          tenant: `slow-${run}`,
        });
        during.push(await measure(slow.seconds));
      } finally {
        await posthorn.stop();
        await postgres.query('truncate posthorn.queue');
      }
    }
    const of = (values: readonly Latency[], key: keyof Latency) => median(values.map((value) => value[key]));
    return [
      { name: 'healthy endpoints before: p50', value: of(before, 'p50'), unit: 'ms' },
      { name: 'healthy endpoints before: p99', value: of(before, 'p99'), unit: 'ms' },
      { name: 'healthy endpoints beside slow ones: p50', value: of(during, 'p50'), unit: 'ms' },
      { name: 'healthy endpoints beside slow ones: p99', value: of(during, 'p99'), unit: 'ms' },
      { name: 'healthy events delivered in time', value: of(during, 'share') * 100, unit: '%' },
      {
        name: 'p99 beside slow endpoints / before',
        value: median(during.map(({ p99 }, run) => p99 / before[run]!.p99)),
        unit: '×',
        id: 'noisy_slow_endpoints_ratio',
        goal: { atMost: 1.5 },
        limit: { atMost: 4 },
      },
    ];
  },
};

async function measureHealthy(
  posthorn: Posthorn,
  receiver: Receiver,
  options: { readonly tenant: string; readonly types: string[]; readonly seconds: number },
): Promise<Latency> {
  receiver.recordLatencies(true);
  const { accepted } = await runLoad(posthorn, { ...options, rate: HEALTHY_RATE });
  // What has not arrived by now counts as this late.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const received = await receiver.takeLatencies();
  receiver.recordLatencies(false);
  const late = Array.from({ length: Math.max(0, accepted - received.length) }, () => options.seconds * 1_000);
  const latencies = [...received, ...late];
  return {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    share: received.length / accepted,
  };
}
