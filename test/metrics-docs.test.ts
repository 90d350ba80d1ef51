import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { docsFile, metricsDocs } from '../scripts/metrics-docs.ts';

it('docs/metrics.md is up to date (if not: npm run docs:metrics)', async () => {
  expect(await readFile(docsFile, 'utf8')).toBe(metricsDocs());
});
