import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { disabledReasons } from '../src/domain/endpoint.ts';
import { deadReasons, errorClasses } from '../src/domain/outcome.ts';
import { problemCodes } from '../src/domain/problem.ts';

/** The first cell of each row of the table below a heading. */
async function documented(heading: string): Promise<string[]> {
  const text = await readFile(new URL('../docs/errors.md', import.meta.url), 'utf8');
  const section = text.split('\n## ').find((part) => part.startsWith(heading));
  if (section === undefined) throw new Error(`docs/errors.md has no section "${heading}"`);
  return [...section.matchAll(/^\| `(\w+)` \|/gm)].map((match) => match[1]!);
}

test.each([
  ['Problems of the API', Object.keys(problemCodes)],
  ['Classes of failed attempts', Object.keys(errorClasses)],
  ['Why a delivery is dead', [...deadReasons]],
  ['Why an endpoint is disabled', [...disabledReasons]],
])('docs/errors.md lists exactly what the code knows: %s', async (heading, known) => {
  expect((await documented(heading)).toSorted()).toEqual(known.toSorted());
});

test('docs/errors.md shows the status of each problem and the hint of each class', async () => {
  const text = await readFile(new URL('../docs/errors.md', import.meta.url), 'utf8');
  for (const [code, { status }] of Object.entries(problemCodes))
    expect(text).toContain(`| \`${code}\` | ${status} |`);
  for (const [name, hint] of Object.entries(errorClasses))
    expect(text).toContain(`| \`${name}\` | ${hint} |`);
});
