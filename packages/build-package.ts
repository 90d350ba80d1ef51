/** Builds a package with the compiler alone, as ES modules into `esm` and as CommonJS into `cjs`. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const typescript = createRequire(import.meta.url).resolve('typescript/package.json');
const tsc = path.join(path.dirname(typescript), 'bin/tsc');

/** `output` is relative to the package; `dist` by default. */
export function buildPackage(root: string, output = 'dist'): void {
  const directory = path.resolve(root, output);
  rmSync(directory, { recursive: true, force: true });
  for (const [project, kind] of [
    ['tsconfig.json', 'esm'],
    ['tsconfig.cjs.json', 'cjs'],
  ] as const) {
    const args = [tsc, '-p', project, '--outDir', path.join(directory, kind)];
    execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  }
  // The package's own package.json says "module": this one overrides it for the CommonJS build.
  writeFileSync(path.join(directory, 'cjs/package.json'), '{ "type": "commonjs" }\n');
}
