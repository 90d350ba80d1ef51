/** Written by `npm run capacity`. Do not edit. */
import type { UnitCosts } from './unit-costs.ts';

export const measuredCosts: UnitCosts = {
  cpu: {
    api: {
      event: 152,
      delivery: 51.9,
      retry: 158,
      kilobyte: 9.36,
      transaction: 0,
    },
    worker: {
      event: 1.99,
      delivery: 119,
      retry: 305,
      kilobyte: 9.2,
      transaction: 0,
    },
    postgres: {
      event: 61.8,
      delivery: 68.8,
      retry: 335,
      kilobyte: 6.52,
      transaction: 0,
    },
  },
  idleCores: {
    api: 0.0119,
    worker: 0.0164,
    postgres: 0.00633,
  },
  transactionMs: 5,
  walBytes: {
    event: 332,
    delivery: 1490,
    retry: 1890,
    kilobyte: 1140,
    transaction: 0,
  },
  diskBytes: {
    event: 233,
    delivery: 822,
    retry: 621,
    kilobyte: 1050,
    transaction: 0,
  },
  connections: 11,
  processMegabytes: 219,
  endpointBytes: 2268,
  waitingBytes: 280,
  measuredOn: '2 cores (AMD EPYC), Node v24.21.0, 2026-11-16',
};
