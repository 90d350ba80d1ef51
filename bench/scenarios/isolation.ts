/**
 * 50 endpoints at a steady pace: all healthy, then with 20 % of them hanging until their deadline and 10 % failing.
 * The p99 of the healthy ones, bad against good, as the medians of several turns.
 */
import { median, percentile, registerEndpoints, runLoad, startPosthorn, untilSettled } from '../harness.ts';
import type { Bench } from '../scenario.ts';

const COUNT = 50;
const RATE = 500;

export const isolation: Bench = {
  name: 'isolation',
  async run({ postgres, receiver, quick, progress }) {
    const seconds = quick ? 4 : 10;
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
    const ALL_WELL = (index: number) => `/ok/${index}`;
    const SOME_BAD = (index: number) =>
      index % 5 === 0 ? `/hang/${index}` : index % 10 === 1 ? `/fail/${index}` : `/ok/${index}`;
    // In turn, so that whatever else the machine does falls on both: one 99th percentile says little by itself.
    const alones: number[] = [];
    const amongs: number[] = [];
    for (let turn = 1; turn <= (quick ? 1 : 5); turn += 1) {
      alones.push(await measure(`alone-${turn}`, ALL_WELL));
      amongs.push(await measure(`among-${turn}`, SOME_BAD));
    }
    const alone = median(alones);
    const among = median(amongs);
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
