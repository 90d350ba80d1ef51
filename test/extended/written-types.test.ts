/** VER-1, VER-2: TypeScript checks the converters of an operator, and narrows the types that a receiver generates. */
import { spawnSync } from 'node:child_process';
import { rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { writeTypes } from '../../src/catalogue/documents/write-types.ts';
import { readSchema } from '../../src/catalogue/read-schema.ts';
import { ROOT, readBlocks } from '../support/doc-blocks.ts';
import { temporaryDirectory } from '../support/postgres.ts';

let converters = '';
beforeAll(() => {
  converters = readBlocks('docs/pins.md').find(({ language }) => language === 'ts')!.text;
});

/** Runs the TypeScript compiler on these files, in a folder where `posthorn` is installed. Returns what it reports. */
async function compile(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await temporaryDirectory('posthorn-types-');
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2024',
    module: 'nodenext',
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    typeRoots: [path.join(ROOT, 'node_modules/@types')],
    // Only the module that has the type: the whole package would take half a minute.
    paths: { posthorn: [path.join(ROOT, 'src/convert/config-file.ts')] },
  };
  await symlink(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'));
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
  await writeFile(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: Object.keys(files) }),
  );
  for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text);
  const compiler = path.join(ROOT, 'node_modules/.bin/tsc');
  const { stdout } = spawnSync(compiler, ['-p', folder], { encoding: 'utf8' });
  return stdout;
}

test('VER-2: the compiler accepts the converters of docs/pins.md', async () => {
  expect(await compile({ 'posthorn.config.ts': converters })).toBe('');
});

test.each([
  ['returns another type than it names', /name: `[^`]*`/, 'name: 1', /TS2322.*'number'.*'string'/],
  [
    'has a key that names no step',
    /'2026-04-01→2025-10-01'/,
    "'2026-04-01'",
    /'2026-04-01'.*does not exist in type/,
  ],
])('VER-2: the compiler reports a converter that %s', async (_what, before, after, report) => {
  expect(converters).toMatch(before);
  expect(await compile({ 'posthorn.config.ts': converters.replace(before, after) })).toMatch(report);
});

test('VER-1: a receiver can tell the generated types apart by type and version', async () => {
  const schema = (field: string, type: string) =>
    readSchema({ type: 'object', required: [field], properties: { [field]: { type } } }, 'schema');
  const events = writeTypes([
    { name: 'order.created', version: 'v1', schema: schema('name', 'string') },
    { name: 'order.created', version: 'v2', schema: schema('total', 'integer') },
    { name: 'order.paid', version: 'v1', schema: schema('paid', 'boolean') },
  ]);
  const receive = (last: string) => `import type { PosthornEvent } from './events.d.ts';
export function receive(event: PosthornEvent): string | number | boolean {
  if (event.type === 'order.paid') return event.data.paid;
  return event.schema_version === 'v1' ? event.data.name : event.data.${last};
}
`;
  expect(await compile({ 'events.d.ts': events, 'receive.ts': receive('total') })).toBe('');
  expect(await compile({ 'events.d.ts': events, 'receive.ts': receive('name') })).toMatch(
    /Property 'name' does not exist/,
  );
});
