import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { TenantRates } from './tenant-rates.ts';

function newRates(perSecond: number, burst: number) {
  let now = 0;
  const rates = new TenantRates(perSecond, burst, { ...systemClock, monotonic: () => now });
  return {
    rates,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test('without any limit nobody waits', () => {
  const { rates } = newRates(0, 1);
  for (let i = 0; i < 1000; i += 1) expect(rates.take('a')).toBe(0);
});

test('a tenant is held to its own limit, the others to the common one or to none', () => {
  const { rates, pass } = newRates(0, 1);
  rates.setOwn(new Map([['a', { perSecond: 1, burst: 2 }]]));
  expect([rates.take('a'), rates.take('a'), rates.take('a')]).toEqual([0, 0, 1]);
  expect([rates.take('b'), rates.take('b')]).toEqual([0, 0]);
  pass(1000);
  expect(rates.take('a')).toBe(0);

  const common = newRates(1, 1);
  common.rates.setOwn(new Map([['a', { perSecond: 100, burst: 100 }]]));
  expect([common.rates.take('b'), common.rates.take('b')]).toEqual([0, 1]);
  for (let i = 0; i < 100; i += 1) expect(common.rates.take('a')).toBe(0);
});

test('the same limits read again do not fill a bucket; a changed one starts anew', () => {
  const { rates } = newRates(0, 1);
  rates.setOwn(new Map([['a', { perSecond: 1, burst: 1 }]]));
  expect(rates.take('a')).toBe(0);
  rates.setOwn(new Map([['a', { perSecond: 1, burst: 1 }]]));
  expect(rates.take('a')).toBe(1);
  rates.setOwn(new Map([['a', { perSecond: 1, burst: 5 }]]));
  expect(rates.take('a')).toBe(0);
  rates.setOwn(new Map());
  for (let i = 0; i < 10; i += 1) expect(rates.take('a')).toBe(0);
});
