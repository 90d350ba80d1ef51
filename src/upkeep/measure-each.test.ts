import { expect, test } from 'vitest';
import { measureEach } from './measurements.ts';

const fail = async (): Promise<number> => {
  throw new Error('too slow');
};

test('OBS-1: a figure that cannot be measured does not stop the others', async () => {
  const problems: unknown[] = [];
  const figures = await measureEach({ first: fail, second: async () => 2 }, (_what, error) =>
    problems.push(error),
  );
  expect(figures).toEqual({ first: null, second: 2 });
  expect(problems).toEqual([new Error('too slow')]);
});

test('OBS-1: if no figure can be measured, the measurement fails, so that its age grows', async () => {
  await expect(measureEach({ first: fail, second: fail }, () => {})).rejects.toThrow('too slow');
});
