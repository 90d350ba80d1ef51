import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { configurationDocs, docsFile } from '../scripts/configuration-docs.ts';
import { namedSettings } from '../src/config/index.ts';

it('docs/configuration.md is up to date (if not: npm run docs:configuration)', async () => {
  expect(await readFile(docsFile, 'utf8')).toBe(configurationDocs());
});

it('has a row for every setting', () => {
  const docs = configurationDocs();
  for (const { env, flag } of namedSettings)
    expect(docs).toMatch(new RegExp(`^\\| \`${env}\` +\\| \`--${flag}\` +\\|`, 'm'));
});
