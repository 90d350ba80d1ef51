/** The published package works: both builds, without dependencies. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');
let out: string;

beforeAll(() => {
  out = mkdtempSync(path.join(tmpdir(), 'posthorn-client-'));
  execFileSync(process.execPath, ['build.ts', out], { cwd: root });
}, 60_000);
afterAll(() => rmSync(out, { recursive: true, force: true }));

const run = (code: string, type: 'module' | 'commonjs'): string =>
  execFileSync(process.execPath, [`--input-type=${type}`, '-e', code], { encoding: 'utf8' });

it('the package can be imported and required', () => {
  const use = `const posthorn = new Posthorn({ url: 'http://127.0.0.1:1', key: 'phk_x', retries: 0 });
    posthorn.service.getHealth().catch((error) => console.log(error.name));`;
  expect(run(`import { Posthorn } from '${out}/esm/index.js'; ${use}`, 'module')).toBe('ConnectionError\n');
  expect(run(`const { Posthorn } = require('${out}/cjs/index.js'); ${use}`, 'commonjs')).toBe(
    'ConnectionError\n',
  );
});

it('the package imports only its own files, and every exported file exists', () => {
  for (const kind of ['esm', 'cjs']) {
    const files = readdirSync(path.join(out, kind));
    for (const file of files.filter((name) => name.endsWith('.js'))) {
      const code = readFileSync(path.join(out, kind, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
      const imports = [...code.matchAll(/(?:from |require\()["']([^"']+)["']/g)].map(([, name]) => name!);
      for (const name of imports)
        expect(files, `${file} imports ${name}`).toContain(name.replace(/^\.\//, ''));
      expect(code).not.toMatch(/\b(process|Buffer|__dirname)\b/);
    }
  }
  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  expect([manifest.dependencies, manifest.peerDependencies]).toEqual([undefined, undefined]);
  const named = JSON.stringify(manifest.exports).match(/\.\/dist\/[^"]+/g)!;
  for (const file of named) readFileSync(path.join(out, file.slice('./dist/'.length)));
});
