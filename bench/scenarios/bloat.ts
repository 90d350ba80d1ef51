/** Throughput while another session keeps a transaction open, so that vacuum cannot remove dead rows. */
import pg from 'pg';
import {
  compareWithBareLoop,
  computeRate,
  median,
  type Posthorn,
  registerEndpoints,
  runLoad,
  startPosthorn,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

const EVENTS = 20_000;
/** A round takes about three seconds, and single rounds are noisy. */
const ROUNDS = 9;

/** Reads the counter of the process. A query would scan the dead rows of the queue, and the bench would measure the query. */
async function countSettled(posthorn: Posthorn): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${posthorn.port}/metrics`)).text();
  return Number(/^posthorn_commit_items_sum\{stage="settle"\} (\d+)/m.exec(text)?.[1] ?? 0);
}

export const bloat: Bench = {
  name: 'bloat',
  async run({ postgres, receiver, quick, onProgress }) {
    const minutes = quick ? 0.3 : 10;
    const posthorn = await startPosthorn(postgres);
    const idleClient = new pg.Client({ connectionString: postgres.url });
    try {
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: 'bloat' });
      const measureRate = async (): Promise<number> => {
        const expected = (await countSettled(posthorn)) + EVENTS;
        const load = await runLoad(posthorn, { events: EVENTS, types, tenant: 'bloat', connections: 128 });
        while ((await countSettled(posthorn)) < expected)
          await new Promise((resolve) => setTimeout(resolve, 20));
        return computeRate(load);
      };
      await measureRate();
      const rounds = quick ? 2 : ROUNDS;
      const before = await compareWithBareLoop(receiver, rounds, measureRate);
      await idleClient.connect();
      await idleClient.query(
        'begin isolation level repeatable read; select txid_current(); select count(*) from posthorn.queue',
      );
      const deadline = performance.now() + minutes * 60_000;
      while (performance.now() < deadline) {
        const rate = await measureRate();
        const minutesLeft = Math.max(0, (deadline - performance.now()) / 60_000);
        onProgress(`${minutesLeft.toFixed(1)} minutes left, ${Math.round(rate)}/s`);
      }
      const after = await compareWithBareLoop(receiver, rounds, measureRate);
      return [
        { name: 'before', value: median(before.rates), unit: '/s' },
        {
          name: `after ${minutes} minutes of load with an idle transaction`,
          value: median(after.rates),
          unit: '/s',
        },
        { name: 'before: ratio to the bare loop', value: median(before.ratios), unit: '×' },
        { name: 'after: ratio to the bare loop', value: median(after.ratios), unit: '×' },
        {
          name: 'after / before',
          value: median(after.ratios) / median(before.ratios),
          unit: '×',
          id: 'bloat_ratio',
          goal: { atLeast: 0.8 },
          limit: { atLeast: 0.5 },
        },
      ];
    } finally {
      await idleClient.end().catch(() => {});
      await posthorn.stop();
    }
  },
};
