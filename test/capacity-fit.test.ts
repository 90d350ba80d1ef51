import { expect, it } from 'vitest';
import { fitCosts, fitTransactionMs, ONE_NODE, ratesOfSample, type Samples } from '../bench/capacity/fit.ts';
import type { Load, Sample } from '../bench/capacity/measure.ts';
import { costOf, transactionsOf } from '../src/cli/capacity/model.ts';

const COSTS = { event: 50, delivery: 80, retry: 60, kilobyte: 20, transaction: 400 };
const TRANSACTION_MS = 3;
const IDLE_PER_SECOND = 7;

/** A sample of a machine whose costs are known. */
function sampleOf(load: Partial<Load>, attempts = 1): Sample {
  const all: Load = { name: '', rate: 600, seconds: 10, endpoints: 1, fanOut: 1, bytes: 300, ...load };
  const events = all.rate * all.seconds;
  const deliveries = events * all.fanOut;
  const sample = {
    load: all,
    seconds: 12,
    events,
    deliveries,
    retries: deliveries * (attempts - 1),
    cpu: { api: 0, worker: 0, postgres: 0 },
    diskBytes: 0,
    connections: 20,
    memory: { api: 100, worker: 100 },
  };
  const rates = ratesOfSample({ ...sample, transactions: 0, walBytes: 0 });
  const transactions = transactionsOf(rates, ONE_NODE, TRANSACTION_MS).postgres;
  return {
    ...sample,
    transactions: transactions * all.seconds + IDLE_PER_SECOND * sample.seconds,
    walBytes: costOf(rates, transactions, COSTS) * all.seconds + IDLE_PER_SECOND * sample.seconds,
  };
}

it('SCL-3: costs are found again in the loads that they make', () => {
  const samples: Samples = {
    idle: sampleOf({ rate: 0 }),
    accept: sampleOf({ fanOut: 0 }),
    base: sampleOf({}),
    fanOut: sampleOf({ rate: 150, fanOut: 5 }),
    payload: sampleOf({ rate: 300, bytes: 8_000 }),
    retry: sampleOf({ rate: 100 }, 5),
    lowRate: sampleOf({ rate: 120 }),
    lowestRate: sampleOf({ rate: 30 }),
  };
  const transactionMs = fitTransactionMs(samples);
  expect(Math.abs(transactionMs / TRANSACTION_MS - 1)).toBeLessThan(0.02);
  const found = fitCosts(samples, 'postgres', TRANSACTION_MS, ({ walBytes }) => walBytes);
  for (const [name, cost] of Object.entries(COSTS))
    expect(Math.abs(found[name as keyof typeof found] / cost - 1), name).toBeLessThan(0.02);
});
