import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
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

it('adds up several runs, also one that broke off before it reported', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'posthorn-counts-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const report = path.join(directory, 'one.json');
  const testResults = [file('passed', 'passed', 'passed')];
  writeFileSync(report, JSON.stringify({ numPassedTests: 2, numFailedTests: 0, testResults }));
  const script = fileURLToPath(new URL('../scripts/count-results.ts', import.meta.url));
  const count = (...args: string[]) =>
    execFileSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  expect(count(report, '0', report, '0')).toBe('4 passed, 0 failed\n');
  expect(count(report, '0', path.join(directory, 'none.json'), '1')).toBe('2 passed, 1 failed\n');
});
