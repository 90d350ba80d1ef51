/** A tenant has 100 endpoints with 500 patterns each, and publishes batches of 1,000 events that all have another type. */
import { attackWith, insertEndpoints, noisyBench, type Target } from '../noisy.ts';

const ENDPOINTS = 100;
const PATTERNS = 500;
const EVENTS = 1_000;

const tenantOf = ({ run }: Target): string => `patterns-${run}`;

export const noisyPatterns = noisyBench({
  name: 'patterns',
  beside: 'beside many patterns and types',
  async prepare(target) {
    for (let n = 0; n < ENDPOINTS; n += 1) {
      const events = Array.from({ length: PATTERNS }, (_, index) => `a${n}.b${index}.*`);
      await insertEndpoints(target.postgres, { tenant: tenantOf(target), count: 1, config: { events } });
    }
  },
  async run(target, signal) {
    for (let batch = 0; !signal.aborted; batch += 1) {
      const events = Array.from({ length: EVENTS }, (_, index) => ({
        tenant: tenantOf(target),
        type: `a${index % ENDPOINTS}.b${index % PATTERNS}.c${batch}-${index}`,
        data: 1,
      }));
      await attackWith(target, '/v1/events/batch', JSON.stringify({ events }));
    }
  },
});
