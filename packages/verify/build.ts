/** Both builds, by the compiler alone: `dist/esm` and `dist/cjs`. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const root = import.meta.dirname;
const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
const tsc = path.join(path.dirname(typescript), 'bin/tsc');

rmSync(path.join(root, 'dist'), { recursive: true, force: true });
for (const project of ['tsconfig.json', 'tsconfig.cjs.json']) {
  execFileSync(process.execPath, [tsc, '-p', project], { cwd: root, stdio: 'inherit' });
}
// The package says "module"; here it means the other kind.
writeFileSync(path.join(root, 'dist/cjs/package.json'), '{ "type": "commonjs" }\n');
