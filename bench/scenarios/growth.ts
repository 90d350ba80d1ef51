/** Throughput of an empty database against one with millions of rows of history. */
import { fillHistory, type HistoryOrder } from '../fill-history.ts';
import {
  besideBareLoop,
  median,
  registerEndpoints,
  runLoad,
  startPosthorn,
  untilSettled,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

/** Of the last hours, to the endpoints of the first measurement: what is new goes to the same partitions and pages. */
const historyOf = (deliveries: number): HistoryOrder => ({
  deliveries,
  spanMs: 6 * 3_600_000,
  perMille: { dead: 0, waiting: 0, discarded: 0, skipped: 0 },
  attemptsPercent: 100,
  dataBytes: 1000,
});

export const growth: Bench = {
  name: 'growth',
  async run({ postgres, receiver, runs, quick, progress }) {
    const rows = quick ? 200_000 : 3_000_000;
    progress('empty');
    const before = await measure('young');
    progress(`filling ${rows.toLocaleString('en')} deliveries`);
    await fillHistory(postgres.query, historyOf(rows));
    progress('grown');
    const after = await measure('old');
    return [
      { name: 'empty', value: before.rate, unit: '/s' },
      {
        name: `with ${rows.toLocaleString('en')} deliveries, events and attempts`,
        value: after.rate,
        unit: '/s',
      },
      { name: 'empty: ratio to the bare loop', value: before.ratio, unit: '×' },
      { name: 'grown: ratio to the bare loop', value: after.ratio, unit: '×' },
      {
        name: 'ratio of the two',
        value: after.ratio / before.ratio,
        unit: '×',
        id: 'growth_ratio',
        goal: { atLeast: 0.9 },
        floor: { atLeast: 0.6 },
      },
    ];

    async function measure(tenant: string): Promise<{ rate: number; ratio: number }> {
      const posthorn = await startPosthorn(postgres);
      try {
        const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant });
        const once = async (): Promise<number> => {
          const load = await runLoad(posthorn, { events: 20_000, types, tenant, connections: 128 });
          await untilSettled(postgres, 60);
          return load.accepted / ((performance.timeOrigin + performance.now() - load.beganAt) / 1000);
        };
        await once();
        const { rates, ratios } = await besideBareLoop(receiver, runs, once);
        return { rate: median(rates), ratio: median(ratios) };
      } finally {
        await posthorn.stop();
      }
    }
  },
};
