/**
 * The p99 latency of healthy endpoints: alone, and while 20 % of the other endpoints hang until the timeout and 10 % fail.
 * 50 endpoints at a steady rate, medians of several rounds.
 */
import {
  median,
  percentile,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

const COUNT = 50;
const RATE = 500;

export const isolation: Bench = {
  name: 'isolation',
  async run({ postgres, receiver, quick, onProgress }) {
    const seconds = quick ? 4 : 10;
    const measure = async (tenant: string, path: (index: number) => string): Promise<number> => {
      onProgress(tenant);
      const posthorn = await startPosthorn(postgres);
      try {
        const settings = { timeout_ms: 2000, retry: { schedule: [0, 1], jitter: 'none' } };
        const types = await registerEndpoints(posthorn, receiver, { count: COUNT, tenant, path, settings });
        await runLoad(posthorn, { rate: RATE, seconds: 3, types, tenant });
        receiver.recordLatencies(true);
        await runLoad(posthorn, { rate: RATE, seconds, types, tenant });
        const p99 = percentile(await receiver.takeLatencies(), 0.99);
        receiver.recordLatencies(false);
        return p99;
      } finally {
        await posthorn.stop();
        await postgres.query('truncate posthorn.queue');
      }
    };
    const allHealthy = (index: number) => `/ok/${index}`;
    const someFailing = (index: number) =>
      index % 5 === 0 ? `/hang/${index}` : index % 10 === 1 ? `/fail/${index}` : `/ok/${index}`;
    // The two alternate, so that other work on the machine affects both.
    const healthyP99s: number[] = [];
    const mixedP99s: number[] = [];
    for (let round = 1; round <= (quick ? 1 : 5); round += 1) {
      healthyP99s.push(await measure(`healthy-${round}`, allHealthy));
      mixedP99s.push(await measure(`mixed-${round}`, someFailing));
    }
    const healthyP99 = median(healthyP99s);
    const mixedP99 = median(mixedP99s);
    await waitUntilSettled(postgres, 5);
    return [
      { name: 'p99 of healthy endpoints, alone', value: healthyP99, unit: 'ms' },
      { name: 'p99 of healthy endpoints, 20 % of others hang and 10 % fail', value: mixedP99, unit: 'ms' },
      {
        name: 'ratio',
        value: mixedP99 / healthyP99,
        unit: '×',
        id: 'isolation_ratio',
        goal: { atMost: 1.5 },
        limit: { atMost: 4 },
      },
    ];
  },
};
