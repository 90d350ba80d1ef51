import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`attacks/${path}`, import.meta.url), 'utf8');

it.each(['hostile-tenants', 'failing-machines'])('test/attacks/README.md lists every case of %s', (name) => {
  const titles = [...read(`extended/${name}.test.ts`).matchAll(/^ {2}(['"])(.+)\1: \{/gm)].map(
    (match) => match[2]!,
  );
  const list = read('README.md');
  expect(titles.length).toBeGreaterThan(20);
  expect(titles.filter((title) => !list.includes(`| ${title} |`))).toEqual([]);
});
