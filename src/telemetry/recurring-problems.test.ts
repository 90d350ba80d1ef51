import { pino } from 'pino';
import { expect, test } from 'vitest';
import { recurringProblems } from './recurring-problems.ts';

test('a recurring problem is logged at once, then counted, and logged again after ten seconds', () => {
  const lines: { msg: string; repeated?: number }[] = [];
  const log = pino({}, { write: (text: string) => void lines.push(JSON.parse(text)) });
  let now = 0;
  const problem = recurringProblems(log, { now: () => now, monotonic: () => now, after: () => () => {} });

  problem('renew', new Error('away'));
  problem('renew', new Error('away'));
  problem('read', new Error('away'));
  expect(lines.map(({ msg }) => msg)).toEqual([
    'could not renew; will try again',
    'could not read; will try again',
  ]);

  now = 10_001;
  problem('renew', new Error('still away'));
  expect(lines.at(-1)).toMatchObject({ msg: 'could not renew; will try again', repeated: 1 });
});
