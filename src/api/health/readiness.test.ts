import { expect, test } from 'vitest';
import { systemClock } from '../../domain/clock.ts';
import { Readiness } from './readiness.ts';

function setUp({ needsWorkers = true } = {}) {
  let now = 0;
  let facts = {
    isReadOnly: false,
    isStandbyAway: false,
    hasPartition: true,
    ownedShards: 256,
    stalledShards: 0,
  };
  const readiness = new Readiness({
    clock: { ...systemClock, now: systemClock.now, monotonic: () => now },
    read: async () => facts,
    takeOverMs: 1000,
    needsWorkers,
  });
  const see = (changes: Partial<typeof facts>, atMs = now) => {
    now = atMs;
    facts = { ...facts, ...changes };
    return readiness.findMissing();
  };
  return { see };
}

test('a server on a standby, or without a current partition, is not ready', async () => {
  const { see } = setUp({ needsWorkers: false });
  expect(await see({})).toBeNull();
  expect(await see({ isReadOnly: true })).toContain('takes no writes');
  expect(await see({ isReadOnly: false, hasPartition: false })).toContain('no partition');
});

test('a server whose commits wait for a standby is not ready, and says why rather than that nobody owns shards', async () => {
  const { see } = setUp();
  expect(await see({ isStandbyAway: true, ownedShards: 0 })).toContain('synchronous standby');
});

test('a server is not ready before a worker owns a shard', async () => {
  const { see } = setUp();
  expect(await see({ ownedShards: 0 })).toContain('No living worker owns a shard');
  expect(await see({ ownedShards: 128 })).toBeNull();
});

test('a server stays ready during a take-over, but not if shards stay without an owner', async () => {
  const { see } = setUp();
  expect(await see({ ownedShards: 256 }, 0)).toBeNull();
  expect(await see({ ownedShards: 0 }, 5000)).toBeNull();
  expect(await see({ ownedShards: 256 }, 5900)).toBeNull();
  expect(await see({ ownedShards: 100 }, 9000)).toBeNull();
  expect(await see({ ownedShards: 100 }, 10_001)).toBe('156 of 256 shards have no living worker.');
  expect(await see({ ownedShards: 0 }, 10_002)).toContain('No living worker');
  expect(await see({ ownedShards: 256 }, 10_003)).toBeNull();
});

test('if workers are not needed, a server is ready without them', async () => {
  expect(await setUp({ needsWorkers: false }).see({ ownedShards: 0 })).toBeNull();
});

test('a server is not ready while a worker that owns shards cannot read deliveries or record results', async () => {
  const { see } = setUp();
  expect(await see({ stalledShards: 128 })).toBe(
    'The workers of 128 of 256 shards cannot read deliveries or record results.',
  );
  expect(await see({ stalledShards: 0 })).toBeNull();
  expect(await setUp({ needsWorkers: false }).see({ stalledShards: 256 })).toBeNull();
});
