/**
 * Events per second to one endpoint with batches of 100 (FAN-4), published 100 per request, accepted and settled. Compared
 * with a bare loop that signs and POSTs single events to the same receiver.
 */
import {
  compareWithBareLoop,
  median,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import type { Bench } from '../scenario.ts';

export const batchesToOneEndpoint: Bench = {
  name: 'batches-to-one-endpoint',
  async run({ postgres, receiver, runs, quick }) {
    const events = quick ? 5_000 : 60_000;
    const posthorn = await startPosthorn(postgres, {}, ['--processes', '2']);
    try {
      const tenant = 'batches';
      const settings = { batch: { max_events: 100, max_wait_ms: 200 } };
      const types = await registerEndpoints(posthorn, receiver, { count: 1, tenant, settings });
      let requests = 0;
      const measureRate = async (): Promise<number> => {
        const before = await receiver.count();
        const load = await runLoad(posthorn, { events, types, tenant, batch: 100, connections: 8 });
        if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
        await waitUntilSettled(postgres, 60);
        const seconds = (performance.timeOrigin + performance.now() - load.startedAt) / 1000;
        requests = (await receiver.count()) - before;
        return load.accepted / seconds;
      };
      await measureRate();
      const { rates, ratios } = await compareWithBareLoop(
        receiver,
        quick ? 1 : Math.min(runs, 3),
        measureRate,
      );
      return [
        { name: 'batches of 100 to one endpoint: events per second', value: median(rates), unit: '/s' },
        { name: 'events per request', value: events / requests, unit: '' },
        {
          name: 'ratio to the bare loop, which sends single events',
          value: median(ratios),
          unit: '×',
          id: 'batch_ratio',
          goal: { atLeast: 2 },
        },
      ];
    } finally {
      await posthorn.stop();
    }
  },
};
