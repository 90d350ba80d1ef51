/** Accept (request → 202) and accept → received, at a steady pace. The event carries when it was posted. */
import { percentile, registerEndpoints, runLoad, startPosthorn, untilSettled } from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';

export const latency: Bench = {
  name: 'latency',
  async run({ postgres, receiver, quick, progress }) {
    const posthorn = await startPosthorn(postgres);
    try {
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: 'latency' });
      await runLoad(posthorn, { events: 10_000, types, tenant: 'latency' });
      const figures: Figure[] = [];
      for (const rate of [500, 1000]) {
        progress(`${rate}/s`);
        await untilSettled(postgres, 30);
        receiver.record(true);
        const load = await runLoad(posthorn, { rate, seconds: quick ? 3 : 10, types, tenant: 'latency' });
        await untilSettled(postgres, 30);
        const received = await receiver.latencies();
        receiver.record(false);
        for (const [label, values] of [
          ['accept', load.latencies],
          ['posted → received', received],
        ] as const) {
          for (const p of [0.5, 0.95, 0.99]) {
            figures.push({
              name: `${rate}/s: ${label} p${p * 100}`,
              value: percentile(values, p),
              unit: 'ms',
              ...(rate === 1000 && p === 0.99 && label !== 'accept'
                ? { id: 'latency_p99_ms', goal: { atMost: 50 }, floor: { atMost: 250 } }
                : {}),
            });
          }
        }
      }
      return figures;
    } finally {
      await posthorn.stop();
    }
  },
};
