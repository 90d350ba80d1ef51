import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { configurationDocs } from '../scripts/configuration-docs.ts';
import { namedSettings } from '../src/config/index.ts';

test('the configuration pages are generated from the settings (npm run docs:configuration)', async () => {
  for (const [file, text] of configurationDocs()) expect(await readFile(file, 'utf8')).toBe(text);
});

test('every setting is on exactly one page', () => {
  const [main, internal] = [...configurationDocs().values()];
  for (const { env, setting } of namedSettings) {
    expect(main!.includes(`| \`${env}\``), env).toBe(!setting.internal);
    expect(internal!.includes(`| \`${env}\``), env).toBe(setting.internal);
  }
});
