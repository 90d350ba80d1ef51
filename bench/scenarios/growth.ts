/** Throughput with an empty database, and with millions of rows of history. */
import { fillHistory, type HistoryOptions } from '../fill-history.ts';
import {
  compareWithBareLoop,
  computeRate,
  median,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

/** The history is of the last hours and of the same endpoints, so that new rows go to the same partitions and pages. */
const buildHistoryOptions = (deliveries: number): HistoryOptions => ({
  deliveries,
  spanMs: 6 * 3_600_000,
  perMille: { dead: 0, waiting: 0, discarded: 0, skipped: 0 },
  attemptsPercent: 100,
  dataBytes: 1000,
});

export const growth: Bench = {
  name: 'growth',
  async run({ postgres, receiver, runs, quick, onProgress }) {
    const rows = quick ? 200_000 : 3_000_000;
    onProgress('empty');
    const before = await measure('empty');
    onProgress(`filling ${rows.toLocaleString('en')} deliveries`);
    await fillHistory(postgres.query, buildHistoryOptions(rows));
    onProgress('with history');
    const after = await measure('history');
    return [
      { name: 'empty', value: before.rate, unit: '/s' },
      {
        name: `with ${rows.toLocaleString('en')} deliveries, events and attempts`,
        value: after.rate,
        unit: '/s',
      },
      { name: 'empty: ratio to the bare loop', value: before.ratio, unit: '×' },
      { name: 'with history: ratio to the bare loop', value: after.ratio, unit: '×' },
      {
        name: 'with history / empty',
        value: after.ratio / before.ratio,
        unit: '×',
        id: 'growth_ratio',
        goal: { atLeast: 0.9 },
        limit: { atLeast: 0.6 },
      },
    ];

    async function measure(tenant: string): Promise<{ rate: number; ratio: number }> {
      const posthorn = await startPosthorn(postgres);
      try {
        const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant });
        const measureRate = async (): Promise<number> => {
          const load = await runLoad(posthorn, { events: 20_000, types, tenant, connections: 128 });
          await waitUntilSettled(postgres, 60);
          return computeRate(load);
        };
        await measureRate();
        const { rates, ratios } = await compareWithBareLoop(receiver, runs, measureRate);
        return { rate: median(rates), ratio: median(ratios) };
      } finally {
        await posthorn.stop();
      }
    }
  },
};
