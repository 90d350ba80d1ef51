import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import type { Start } from '../ports/delivery-queue.ts';
import { StoreError } from '../ports/store-error.ts';
import { StartLog } from './start-log.ts';

const startOf = (deliveryId: Uuid): Start => ({
  deliveryId,
  attempts: 0,
  careful: false,
  shard: 0,
  probe: null,
});

test('a locked delivery does not keep the starts beside it from being recorded, and its next try waits for no lock', async () => {
  const locked = new Set<Uuid>(['d5']);
  const calls: { ids: Uuid[]; givesUpSoon: boolean }[] = [];
  const pauses: { delayMs: number; task: () => void }[] = [];
  const log = new StartLog({
    queue: {
      markStarted: async (starts, _worker, { givesUpSoon } = { givesUpSoon: false }) => {
        const ids = starts.map(({ deliveryId }) => deliveryId);
        calls.push({ ids, givesUpSoon });
        if (ids.some((id) => locked.has(id))) throw new StoreError('conflict', 'locked');
        return new Set(ids);
      },
    },
    clock: {
      ...systemClock,
      after: (delayMs, task) => {
        pauses.push({ delayMs, task });
        return () => {};
      },
    },
    ownership: { workerId: 'w' },
    onProblem: () => {},
  });
  const answers = new Map<Uuid, boolean>();
  const record = (id: Uuid) => log.record(startOf(id), (maySend) => answers.set(id, maySend));
  const ids = Array.from({ length: 8 }, (_, i) => `d${i}`);
  for (const id of ids) record(id);
  await expect.poll(() => pauses.length).toBe(1);
  expect([...answers]).toEqual(ids.filter((id) => id !== 'd5').map((id) => [id, true]));
  // Halving 8 takes at most 6 more statements, and only the first one waits for the lock.
  expect(calls.length).toBeLessThanOrEqual(7);
  expect(calls.map(({ givesUpSoon }) => givesUpSoon)).toEqual([false, ...calls.slice(1).map(() => true)]);

  expect(pauses[0]!.delayMs).toBe(1_000);
  pauses[0]!.task();
  expect(answers.get('d5')).toBe(false);
  calls.length = 0;
  locked.clear();
  record('d5');
  record('e1');
  await expect.poll(() => answers.get('e1')).toBe(true);
  await expect.poll(() => answers.get('d5')).toBe(true);
  expect(calls).toEqual([
    { ids: ['e1'], givesUpSoon: false },
    { ids: ['d5'], givesUpSoon: true },
  ]);

  // A second locked delivery beside one that is known to be locked: each is answered once.
  locked.add('d5').add('f1');
  pauses.length = 0;
  const answered: Uuid[] = [];
  for (const id of ['d5', 'f1']) log.record(startOf(id), () => answered.push(id));
  await expect.poll(() => pauses.length).toBe(2);
  await new Promise(setImmediate);
  for (const { task } of pauses) task();
  expect(answered.toSorted()).toEqual(['d5', 'f1']);
});
