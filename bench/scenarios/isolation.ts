/**
 * 50 endpoints at a steady pace: all healthy, then with 20 % of them hanging until their deadline and 10 % failing.
 * The p99 of the healthy ones, bad against good.
 */
import { percentile, registerEndpoints, runLoad, startPosthorn, untilSettled } from '../harness.ts';
import type { Bench } from '../scenario.ts';

const COUNT = 50;
const RATE = 500;

export const isolation: Bench = {
  name: 'isolation',
  async run({ postgres, receiver, quick, progress }) {
    const seconds = quick ? 4 : 15;
    const measure = async (tenant: string, path: (index: number) => string): Promise<number> => {
      progress(tenant);
      const posthorn = await startPosthorn(postgres);
      try {
        const settings = { timeout_ms: 2000, retry: { schedule: [0, 1], jitter: 'none' } };
        const types = await registerEndpoints(posthorn, receiver, { count: COUNT, tenant, path, settings });
        await runLoad(posthorn, { rate: RATE, seconds: 3, types, tenant });
        receiver.record(true);
        await runLoad(posthorn, { rate: RATE, seconds, types, tenant });
        const p99 = percentile(await receiver.latencies(), 0.99);
        receiver.record(false);
        return p99;
      } finally {
        await posthorn.stop();
        await postgres.query('truncate posthorn.queue');
      }
    };
    const alone = await measure('alone', (index) => `/ok/${index}`);
    const among = await measure('among', (index) =>
      index % 5 === 0 ? `/hang/${index}` : index % 10 === 1 ? `/fail/${index}` : `/ok/${index}`,
    );
    await untilSettled(postgres, 5);
    return [
      { name: 'healthy p99, alone', value: alone, unit: 'ms' },
      { name: 'healthy p99, 20 % hanging and 10 % failing', value: among, unit: 'ms' },
      {
        name: 'ratio',
        value: among / alone,
        unit: '×',
        id: 'isolation_ratio',
        goal: { atMost: 1.5 },
        floor: { atMost: 4 },
      },
    ];
  },
};
