/** Latency at a steady rate: from request to 202, and from request to arrival. The event carries the time of its request. */
import { percentile, registerEndpoints, runLoad, startPosthorn, waitUntilSettled } from '../harness.ts';
import type { Bench, Figure } from '../scenario.ts';

export const latency: Bench = {
  name: 'latency',
  async run({ postgres, receiver, quick, onProgress }) {
    const posthorn = await startPosthorn(postgres);
    try {
      const types = await registerEndpoints(posthorn, receiver, { count: 50, tenant: 'latency' });
      await runLoad(posthorn, { events: 10_000, types, tenant: 'latency' });
      const figures: Figure[] = [];
      for (const rate of [500, 1000]) {
        onProgress(`${rate}/s`);
        await waitUntilSettled(postgres, 30);
        receiver.recordLatencies(true);
        const load = await runLoad(posthorn, { rate, seconds: quick ? 3 : 10, types, tenant: 'latency' });
        await waitUntilSettled(postgres, 30);
        const received = await receiver.takeLatencies();
        receiver.recordLatencies(false);
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
                ? { id: 'latency_p99_ms', goal: { atMost: 50 }, limit: { atMost: 250 } }
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
