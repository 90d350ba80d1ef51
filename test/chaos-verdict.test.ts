import { expect, test } from 'vitest';
import { pairOf, takenForPoison } from './chaos/verdict.ts';

test('a chaos run fails if a delivery to a receiver that can answer is dead with reason worker_crash', () => {
  const dead = new Map([
    [pairOf('evt_1', 'mortal'), 'exhausted'],
    [pairOf('evt_2', 'plain-1'), 'worker_crash'],
  ]);
  expect(takenForPoison({ dead })).toMatchObject([{ event: 'evt_2', endpoint: 'plain-1' }]);
});
