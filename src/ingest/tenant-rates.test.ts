import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { RateLimit } from '../domain/endpoint.ts';
import { LocalBuckets } from '../domain/local-buckets.ts';
import { TenantRates } from './tenant-rates.ts';

function newRates(perSecond: number, burst: number) {
  let now = 0;
  let limits: Record<string, RateLimit> = {};
  const clock = { ...systemClock, monotonic: () => now };
  const rates = new TenantRates({
    limits: { load: async () => new Map(Object.entries(limits)) },
    buckets: new LocalBuckets(clock),
    clock,
    perSecond,
    burst,
  });
  return {
    rates,
    setLimits: async (changed: typeof limits) => {
      limits = changed;
      await rates.reload();
    },
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test('without any limit no tenant waits', () => {
  const { rates } = newRates(0, 1);
  for (let i = 0; i < 1000; i += 1) expect(rates.take('a')).toBe(0);
});

test('a tenant is held to its own limit, the others to the default limit or to none', async () => {
  const { rates, setLimits, pass } = newRates(0, 1);
  await setLimits({ a: { perSecond: 1, burst: 2 } });
  expect([rates.take('a'), rates.take('a'), rates.take('a')]).toEqual([0, 0, 1]);
  expect([rates.take('b'), rates.take('b')]).toEqual([0, 0]);
  pass(1000);
  expect(rates.take('a')).toBe(0);

  const limited = newRates(1, 1);
  await limited.setLimits({ a: { perSecond: 100, burst: 100 } });
  expect([limited.rates.take('b'), limited.rates.take('b')]).toEqual([0, 1]);
  for (let i = 0; i < 100; i += 1) expect(limited.rates.take('a')).toBe(0);
});

test('reloading keeps the level of a bucket, and refills it only if its limit changed', async () => {
  const { rates, setLimits } = newRates(0, 1);
  await setLimits({ a: { perSecond: 1, burst: 1 } });
  expect(rates.take('a')).toBe(0);
  await setLimits({ a: { perSecond: 1, burst: 1 } });
  expect(rates.take('a')).toBe(1);
  await setLimits({ a: { perSecond: 1, burst: 5 } });
  expect(rates.take('a')).toBe(0);
  await setLimits({});
  for (let i = 0; i < 10; i += 1) expect(rates.take('a')).toBe(0);
});
