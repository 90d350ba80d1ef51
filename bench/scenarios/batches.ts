/**
 * Events per second to one endpoint with batches of 100 (FAN-4), published 100 per request, accepted and settled. Compared
 * with a bare loop that signs and POSTs single events to the same receiver. The processor time of all processes (producer,
 * Posthorn, PostgreSQL, receiver) shows what the ratio is while nothing else runs and all cores are busy.
 */
import {
  compareWithBareLoop,
  measureBareLoop,
  median,
  registerEndpoints,
  runLoad,
  startPosthorn,
  waitUntilSettled,
} from '../harness.ts';
import { readTreeSeconds } from '../process-figures.ts';
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
      const usPerEvent: number[] = [];
      const measureRate = async (): Promise<number> => {
        const before = await receiver.count();
        const cpuBefore = await readTreeSeconds(process.pid);
        const load = await runLoad(posthorn, { events, types, tenant, batch: 100, connections: 8 });
        if (load.rejected > 0) throw new Error(`${load.rejected} events were rejected`);
        await waitUntilSettled(postgres, 60);
        const seconds = (performance.timeOrigin + performance.now() - load.startedAt) / 1000;
        requests = (await receiver.count()) - before;
        usPerEvent.push((((await readTreeSeconds(process.pid)) - cpuBefore) * 1e6) / load.accepted);
        return load.accepted / seconds;
      };
      await measureRate();
      const { rates, ratios } = await compareWithBareLoop(
        receiver,
        quick ? 1 : Math.min(runs, 3),
        measureRate,
      );
      const cpuBefore = await readTreeSeconds(process.pid);
      const receivedBefore = await receiver.count();
      await measureBareLoop(receiver, 3);
      const bareRequests = (await receiver.count()) - receivedBefore;
      const bareUs = (((await readTreeSeconds(process.pid)) - cpuBefore) * 1e6) / bareRequests;
      const eventUs = median(usPerEvent.slice(1));
      return [
        { name: 'processor time per event, all processes', value: eventUs, unit: 'µs' },
        { name: 'processor time per request of the bare loop, with the receiver', value: bareUs, unit: 'µs' },
        { name: 'ratio of processor times', value: bareUs / eventUs, unit: '×' },
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
