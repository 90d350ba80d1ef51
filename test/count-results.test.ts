import { expect, it } from 'vitest';
import { countResults } from '../scripts/count-results.ts';

const file = (status: string, ...tests: string[]) => ({
  status,
  assertionResults: tests.map((each) => ({ status: each })),
});

it('takes the counts of the report', () => {
  const testResults = [file('passed', 'passed', 'passed'), file('failed', 'passed', 'failed')];
  expect(countResults({ numPassedTests: 3, numFailedTests: 1, testResults }, 1)).toEqual({
    passed: 3,
    failed: 1,
  });
});

it('counts a file that could not be loaded', () => {
  const testResults = [file('passed', 'passed'), file('failed')];
  expect(countResults({ numPassedTests: 1, numFailedTests: 0, testResults }, 1)).toEqual({
    passed: 1,
    failed: 1,
  });
});

it('never says "0 failed" of a red run', () => {
  expect(countResults(null, 2)).toEqual({ passed: 0, failed: 1 });
  const testResults = [file('passed', 'passed')];
  expect(countResults({ numPassedTests: 1, numFailedTests: 0, testResults }, 1)).toEqual({
    passed: 1,
    failed: 1,
  });
});
