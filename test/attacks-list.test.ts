import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const directory = new URL('attacks/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, directory), 'utf8');

it.each(['hostile-tenants', 'hostile-tenants-server', 'failing-machines'])(
  'test/attacks/README.md lists every case of %s',
  (name) => {
    const titles = [...read(`extended/${name}.test.ts`).matchAll(/^ {2}(['"])(.+)\1: \{/gm)].map(
      (match) => match[2]!,
    );
    const [, section = ''] = read('README.md').split(`\`extended/${name}.test.ts\`:`);
    const [list = ''] = section.split('\n## ');
    expect(titles.length).toBeGreaterThan(20);
    expect(titles.filter((title) => !list.includes(`| ${title} |`))).toEqual([]);
  },
);

it('test/attacks/README.md lists every file', () => {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .sort();
  const listed = [...read('README.md').matchAll(/^\| `(.+?\.test\.ts)` \|/gm)].map((match) => match[1]!);
  expect(listed.sort()).toEqual(files);
});
