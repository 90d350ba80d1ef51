/** Written by `npm run capacity`. Do not edit. */
import type { UnitCosts } from './unit-costs.ts';

export const measuredCosts: UnitCosts = {
  cpu: {
    api: { event: 150, delivery: 20, retry: 0, kilobyte: 10 },
    worker: { event: 5, delivery: 250, retry: 250, kilobyte: 15 },
    postgres: { event: 100, delivery: 100, retry: 80, kilobyte: 10 },
  },
  idleCores: { api: 0.01, worker: 0.02, postgres: 0.01 },
  walBytes: { event: 700, delivery: 900, retry: 600, kilobyte: 1100 },
  diskBytes: { event: 400, delivery: 600, retry: 300, kilobyte: 1050 },
  processMegabytes: 220,
  endpointBytes: 1600,
  waitingBytes: 400,
  connections: 12,
  measuredOn: 'not measured yet',
};
