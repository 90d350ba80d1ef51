/** Throughput under load while somebody elsewhere keeps a transaction open, so that nothing dead can be cleaned up. */
import pg from 'pg';
import { type Posthorn, registerEndpoints, runLoad, startPosthorn } from '../harness.ts';
import type { Bench } from '../scenario.ts';

const EVENTS = 20_000;

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
        const started = performance.now();
        const wanted = (await settled(posthorn)) + EVENTS;
        const load = await runLoad(posthorn, { events: EVENTS, types, tenant: 'bloat', connections: 128 });
        while ((await settled(posthorn)) < wanted) await new Promise((resolve) => setTimeout(resolve, 20));
        return load.accepted / ((performance.now() - started) / 1000);
      };
      await once();
      const before = await once();
      await idle.connect();
      await idle.query(
        'begin isolation level repeatable read; select txid_current(); select count(*) from posthorn.queue',
      );
      const until = performance.now() + minutes * 60_000;
      let after = before;
      while (performance.now() < until) {
        after = await once();
        progress(
          `${Math.max(0, (until - performance.now()) / 60_000).toFixed(1)} minutes to go, ${Math.round(after)}/s`,
        );
      }
      return [
        { name: 'before', value: before, unit: '/s' },
        { name: `after ${minutes} minutes of load beside an idle transaction`, value: after, unit: '/s' },
        {
          name: 'ratio',
          value: after / before,
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
