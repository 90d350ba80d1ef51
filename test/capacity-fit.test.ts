import { expect, it } from 'vitest';
import { fitCosts, type Samples } from '../bench/capacity/fit.ts';
import type { Load, Sample } from '../bench/capacity/measure.ts';

/** A sample of a machine whose costs are known. */
function sampleOf(load: Partial<Load>, attempts = 1): Sample {
  const all: Load = { name: '', rate: 100, seconds: 10, endpoints: 1, fanOut: 1, bytes: 300, ...load };
  const events = all.rate * all.seconds;
  const deliveries = events * all.fanOut;
  const retries = deliveries * (attempts - 1);
  const cost = 12 * 7 + events * 50 + deliveries * 80 + retries * 60 + ((events * all.bytes) / 1_000) * 20;
  return {
    load: all,
    seconds: 12,
    events,
    deliveries,
    retries,
    cpu: { api: 0, worker: 0, postgres: 0 },
    walBytes: cost,
    diskBytes: 0,
    connections: 20,
    memory: { api: 100, worker: 100 },
  };
}

it('SCL-3: costs are found again in the loads that they make', () => {
  const samples: Samples = {
    idle: sampleOf({ rate: 0 }),
    accept: sampleOf({ fanOut: 0 }),
    base: sampleOf({}),
    fanOut: sampleOf({ fanOut: 5 }),
    payload: sampleOf({ bytes: 8_000 }),
    retry: sampleOf({ rate: 20 }, 5),
  };
  expect(fitCosts(samples, ({ walBytes }) => walBytes)).toEqual({
    event: 50,
    delivery: 80,
    retry: 60,
    kilobyte: 20,
  });
});
