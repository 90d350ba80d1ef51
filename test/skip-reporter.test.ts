import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { countReasons } from './support/skip-reporter.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

it('names the commonest reason first', () => {
  expect(countReasons(['no disk', 'no browser', 'no browser'])).toEqual([
    '2 skipped: no browser',
    '1 skipped: no disk',
  ]);
  expect(countReasons([])).toEqual([]);
});

const TESTS = `
import { beforeAll, describe, it } from 'vitest';
import { needs } from '${root}test/support/needs.ts';

describe('of a browser', needs('no browser'), () => {
  beforeAll(() => { throw new Error('hooks of skipped suites do not run'); });
  it('one', () => {});
  describe('inside', () => { it('two', () => {}); });
});
it('three', needs('no disk'), () => {});
it('four', (context) => context.skip('no network'));
it.skip('five', () => {});
it('runs', needs(null), () => {});
`;

it('a run ends with what was skipped and why, and hooks of skipped suites do not run', async () => {
  await mkdir(path.join(root, 'tmp'), { recursive: true });
  const directory = await mkdtemp(path.join(root, 'tmp', 'skips-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(path.join(directory, 'vitest.config.ts'), 'export default {};');
  await writeFile(path.join(directory, 'some.test.ts'), TESTS);
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
  const reporter = path.join(root, 'test/support/skip-reporter.ts');
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [vitest, 'run', '--reporter', 'default', '--reporter', reporter],
    { cwd: directory },
  );
  expect(stripVTControlCharacters(stdout)).toMatch(/1 passed \| 5 skipped/);
  expect(stdout.match(/^\d+ skipped: .*$/gm)).toEqual([
    '2 skipped: no browser',
    '1 skipped: no disk',
    '1 skipped: no network',
    '1 skipped: no reason is given',
  ]);
});
