/** Throughput under load while somebody elsewhere keeps a transaction open, so that nothing dead can be cleaned up. */
import pg from 'pg';
import {
  besideBareLoop,
  median,
  type Posthorn,
  registerEndpoints,
  runLoad,
  startPosthorn,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

const EVENTS = 20_000;
/** A round takes some three seconds, and single ones are as noisy as the machine. */
const ROUNDS = 9;

/** As the process counts. To ask the database would be to walk through all that is dead in the queue, and to measure that. */
async function settled(posthorn: Posthorn): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${posthorn.port}/metrics`)).text();
  return Number(/^posthorn_commit_items_sum\{stage="settle"\} (\d+)/m.exec(text)?.[1] ?? 0);
}

export const bloat: Bench = {
  name: 'bloat',
  async run({ postgres, receiver, quick, progress }) {
    const minutes = quick ? 0.3 : 10;
    const posthorn = await startPosthorn(postgres);
    const idle = new pg.Client({ connectionString: postgres.url });
    try {
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: 'bloat' });
      const once = async (): Promise<number> => {
        const wanted = (await settled(posthorn)) + EVENTS;
        const load = await runLoad(posthorn, { events: EVENTS, types, tenant: 'bloat', connections: 128 });
        while ((await settled(posthorn)) < wanted) await new Promise((resolve) => setTimeout(resolve, 20));
        return load.accepted / ((performance.timeOrigin + performance.now() - load.beganAt) / 1000);
      };
      await once();
      const rounds = quick ? 2 : ROUNDS;
      const before = await besideBareLoop(receiver, rounds, once);
      await idle.connect();
      await idle.query(
        'begin isolation level repeatable read; select txid_current(); select count(*) from posthorn.queue',
      );
      const until = performance.now() + minutes * 60_000;
      while (performance.now() < until) {
        const rate = await once();
        const minutesLeft = Math.max(0, (until - performance.now()) / 60_000);
        progress(`${minutesLeft.toFixed(1)} minutes to go, ${Math.round(rate)}/s`);
      }
      const after = await besideBareLoop(receiver, rounds, once);
      return [
        { name: 'before', value: median(before.rates), unit: '/s' },
        {
          name: `after ${minutes} minutes of load beside an idle transaction`,
          value: median(after.rates),
          unit: '/s',
        },
        { name: 'before: ratio to the bare loop', value: median(before.ratios), unit: '×' },
        { name: 'after: ratio to the bare loop', value: median(after.ratios), unit: '×' },
        {
          name: 'ratio of the two',
          value: median(after.ratios) / median(before.ratios),
          unit: '×',
          id: 'bloat_ratio',
          goal: { atLeast: 0.8 },
          floor: { atLeast: 0.5 },
        },
      ];
    } finally {
      await idle.end().catch(() => {});
      await posthorn.stop();
    }
  },
};
