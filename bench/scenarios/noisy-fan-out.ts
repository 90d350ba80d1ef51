/** A tenant publishes batches of 500 events for 1,000 endpoints each, and single events for 20,000 endpoints. */
import { attackWith, insertEndpoints, noisyBench, type Target } from '../noisy.ts';

const manyOf = ({ run }: Target): string => `many-${run}`;
const hugeOf = ({ run }: Target): string => `huge-${run}`;

export const noisyFanOut = noisyBench({
  name: 'fan-out',
  beside: 'beside large fan-outs',
  async prepare(target) {
    await insertEndpoints(target.postgres, { tenant: manyOf(target), count: 1_000 });
    await insertEndpoints(target.postgres, { tenant: hugeOf(target), count: 20_000 });
  },
  async run(target, signal) {
    const event = { tenant: manyOf(target), type: 'order.created', data: 1 };
    const batch = JSON.stringify({ events: Array.from({ length: 500 }, () => event) });
    const single = JSON.stringify({ ...event, tenant: hugeOf(target) });
    const repeat = async (path: string, body: string): Promise<void> => {
      while (!signal.aborted) await attackWith(target, path, body);
    };
    await Promise.all([repeat('/v1/events/batch', batch), repeat('/v1/events', single)]);
  },
});
