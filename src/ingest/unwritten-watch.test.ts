import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { UnwrittenWatch } from './unwritten-watch.ts';

function newWatch(countSlices: (tenant: string, max: number) => Promise<number>) {
  let now = 0;
  const problems: string[] = [];
  const watch = new UnwrittenWatch({
    fanOuts: { countSlices },
    clock: { ...systemClock, monotonic: () => now },
    deliveriesPerCommit: 10,
    sliceRows: 100,
    maxUnwritten: 250,
    onProblem: (what) => problems.push(what),
  });
  /** Lets the count that a call has started end. */
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const ask = async (tenant: string, deliveries: number): Promise<string | null> => {
    const problem = watch.findProblem(tenant, deliveries);
    await settle();
    return problem?.code ?? null;
  };
  return { ask, problems, wait: (ms: number) => (now += ms) };
}

test('a tenant at the limit gets 429 for large fan-outs only, and only until they are written', async () => {
  let slices = 3;
  const counted: string[] = [];
  const { ask, wait } = newWatch(async (tenant, max) => {
    counted.push(tenant);
    return Math.min(tenant === 'full' ? slices : 0, max);
  });
  expect(await ask('full', 10)).toBeNull();
  expect(counted).toEqual([]);
  // The first one is accepted: accepting does not wait for the count.
  expect(await ask('full', 11)).toBeNull();
  expect(await ask('full', 11)).toBe('rate_limited');
  expect(await ask('full', 10)).toBeNull();
  expect(await ask('other', 11)).toBeNull();
  expect(await ask('other', 11)).toBeNull();
  expect(counted).toEqual(['full', 'other']);
  slices = 2;
  wait(600);
  await ask('full', 11);
  expect(await ask('full', 11)).toBeNull();
});

test('while the store does not answer, nothing is refused', async () => {
  let isAway = false;
  const { ask, wait, problems } = newWatch(async () => {
    if (isAway) throw new Error('away');
    return 3;
  });
  await ask('full', 11);
  expect(await ask('full', 11)).toBe('rate_limited');
  isAway = true;
  wait(600);
  await ask('full', 11);
  expect(await ask('full', 11)).toBeNull();
  expect(problems).toHaveLength(1);
});

test('an old count does not refuse anything', async () => {
  const { ask, wait } = newWatch(async () => 3);
  await ask('full', 11);
  wait(120_000);
  expect(await ask('full', 11)).toBeNull();
});
