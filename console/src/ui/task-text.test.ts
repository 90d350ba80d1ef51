import { expect, it } from 'vitest';
import { describeTaskProgress } from './task-text.ts';

it.each([
  [{ kind: 'replay', done: 40, failed: 0, left_out: 0 }, '40 replayed'],
  [
    { kind: 'replay', done: 0, failed: 129, left_out: 129 },
    '0 replayed, 129 skipped: endpoint disabled or deleted',
  ],
  [{ kind: 'discard', done: 3, failed: 1, left_out: 0 }, '3 discarded, 1 changed by somebody else meanwhile'],
] as const)('the progress of %o reads "%s"', (task, text) => expect(describeTaskProgress(task)).toBe(text));
