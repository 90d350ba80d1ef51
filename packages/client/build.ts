/** Both builds, by the compiler alone: `esm` and `cjs`, in `dist` or in the folder that is given. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = import.meta.dirname;
const out = path.resolve(root, process.argv[2] ?? 'dist');
const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
const tsc = path.join(path.dirname(typescript), 'bin/tsc');

rmSync(out, { recursive: true, force: true });
for (const [project, kind] of [
  ['tsconfig.json', 'esm'],
  ['tsconfig.cjs.json', 'cjs'],
] as const) {
  const args = [tsc, '-p', project, '--outDir', path.join(out, kind)];
  execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
}
// The package says "module"; here it means the other kind.
writeFileSync(path.join(out, 'cjs/package.json'), '{ "type": "commonjs" }\n');
