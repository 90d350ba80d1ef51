/** Throughput under load while somebody elsewhere keeps a transaction open, so that nothing dead can be cleaned up. */
import pg from 'pg';
import { registerEndpoints, runLoad, startPosthorn, untilSettled } from '../harness.ts';
import type { Bench } from '../scenario.ts';

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
        const load = await runLoad(posthorn, { events: 20_000, types, tenant: 'bloat', connections: 128 });
        await untilSettled(postgres, 60);
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
