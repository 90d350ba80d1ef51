import { describe, expect, it } from 'vitest';
import { DEFAULT_DEMAND, type Demand, predict, ratesOf } from './model.ts';
import { readDemand } from './read-demand.ts';
import type { UnitCosts } from './unit-costs.ts';

/** Round figures, so that predictions can be computed by hand. */
const COSTS: UnitCosts = {
  cpu: {
    api: { event: 100, delivery: 0, retry: 0, kilobyte: 0, transaction: 0 },
    worker: { event: 0, delivery: 200, retry: 300, kilobyte: 0, transaction: 0 },
    postgres: { event: 50, delivery: 50, retry: 50, kilobyte: 10, transaction: 0 },
  },
  idleCores: { api: 0, worker: 0, postgres: 0 },
  transactionMs: 10,
  walBytes: { event: 100, delivery: 200, retry: 300, kilobyte: 1_000, transaction: 0 },
  diskBytes: { event: 100, delivery: 200, retry: 300, kilobyte: 1_000, transaction: 0 },
  processMegabytes: 100,
  endpointBytes: 1_000,
  waitingBytes: 100,
  connections: 10,
  measuredOn: 'paper',
};

const demand = (part: Partial<Demand>): Demand => ({
  ...DEFAULT_DEMAND,
  eventsPerDay: 86_400_000,
  failures: 0,
  peakFactor: 1,
  ...part,
});

describe('SCL-3: the capacity model', () => {
  it('adds up events, deliveries and kilobytes', () => {
    const { cores, walBytesPerSecond, diskBytesPerDay } = predict(demand({ fanOut: 2 }), COSTS);
    expect(cores.api).toBeCloseTo(0.1, 6);
    expect(cores.worker).toBeCloseTo(0.4, 6);
    expect(cores.postgres).toBeCloseTo(0.16, 6);
    expect(walBytesPerSecond).toBeCloseTo(1_500_000, 0);
    expect(diskBytesPerDay).toBeCloseTo(1_500_000 * 86_400, -3);
  });

  it('charges each transaction, and many events share one at high rates', () => {
    const expensive = { event: 0, delivery: 0, retry: 0, kilobyte: 0, transaction: 1_000 };
    const costs = { ...COSTS, cpu: { ...COSTS.cpu, api: expensive, postgres: expensive } };
    const { cores } = predict(demand({ eventsPerDay: 86_400 * 100 }), costs);
    // A transaction takes 10 ms, and 100 events per second are 10 ms apart: two share each transaction.
    expect(cores.api).toBeCloseTo(0.05, 6);
    expect(cores.postgres).toBeCloseTo(0.1, 6);
    expect(predict(demand({ eventsPerDay: 86_400 * 100_000 }), costs).cores.api).toBeLessThan(0.1);
  });

  it('adds processes until none is too busy, also with the transactions of the further ones', () => {
    const { cores, processes } = predict(demand({ eventsPerDay: 86_400 * 10_000 }), {
      ...COSTS,
      cpu: { ...COSTS.cpu, api: { ...COSTS.cpu.api, transaction: 3_000 } },
    });
    expect(processes.api).toBeGreaterThan(2);
    expect(cores.api / processes.api).toBeLessThanOrEqual(0.65);
  });

  it('retries each failed attempt', () => {
    expect(ratesOf(1_000, demand({ failures: 0.5 })).retries).toBe(1_000);
    expect(ratesOf(1_000, demand({ failures: 0 })).retries).toBe(0);
  });

  it('needs as many sockets as requests are on the wire, and workers for them', () => {
    const { sockets, processes } = predict(demand({ receiverMs: 10_000 }), COSTS);
    expect(sockets).toBe(13_000);
    expect(processes.worker).toBe(7);
  });

  it('plans for the peak, and the disk for the mean', () => {
    const [calm, peaky] = [predict(demand({}), COSTS), predict(demand({ peakFactor: 10 }), COSTS)];
    expect(peaky.cores.worker).toBeCloseTo(10 * calm.cores.worker, 6);
    expect(peaky.diskBytesPerDay).toBe(calm.diskBytesPerDay);
  });

  it('names the first bottleneck, and divides the tenants when one PostgreSQL is not enough', () => {
    const small = predict(demand({}), COSTS);
    expect(small.deployments).toBe(1);
    const large = predict(demand({ eventsPerDay: 86_400 * 2_000_000, peakFactor: 1 }), COSTS);
    expect(large.limits[0]!.use).toBeGreaterThan(1);
    expect(large.limits.map(({ use }) => use)).toEqual(
      large.limits.map(({ use }) => use).toSorted((a, b) => b - a),
    );
    expect(large.deployments).toBe(Math.ceil(large.limits[0]!.use));
  });
});

describe('the options of `posthorn capacity`', () => {
  it('have units', () => {
    expect(
      readDemand({ 'events-per-day': '1e9', payload: '2kB', 'p50-receiver': '1.5s', failures: '2%' }),
    ).toMatchObject({ eventsPerDay: 1e9, payloadBytes: 2_000, receiverMs: 1_500, failures: 0.02, fanOut: 1 });
  });

  it.each([
    ['events-per-day', 'many'],
    ['events-per-day', '-5'],
    ['failures', '100%'],
    ['p50-receiver', '200'],
    ['payload', '1 parsec'],
  ])('--%s %s is refused, with an example', (name, value) => {
    expect(() => readDemand({ [name]: value })).toThrow(`--${name}: "${value}" is not allowed`);
  });
});
