import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findImportCycles } from '../scripts/import-cycles.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const readModules = (pattern: string) =>
  globSync(pattern, { cwd: root }).map((file) => ({
    file: file.replaceAll(path.sep, '/'),
    text: readFileSync(path.join(root, file), 'utf8'),
  }));

it.each(['console/src/**/*.{ts,tsx}', 'packages/*/src/**/*.ts'])(
  '%s has no run-time import cycle',
  (pattern) => {
    const modules = readModules(pattern);
    expect(modules.length).toBeGreaterThan(10);
    expect(findImportCycles(modules)).toEqual([]);
  },
);

describe('findImportCycles', () => {
  const find = (files: Record<string, string>) =>
    findImportCycles(Object.entries(files).map(([file, text]) => ({ file, text })));

  it('finds a cycle over several files, and through a re-export', () => {
    const files = {
      'a/a.ts': "import { b } from './b.ts';",
      'a/b.ts': "import x, {\n  type C,\n  c,\n} from '../c.tsx';",
      'c.tsx': "export * from './a/a.ts';",
    };
    expect(find(files)).toEqual([['a/a.ts', 'a/b.ts', 'c.tsx']]);
  });

  it('ignores type-only imports and imports without a cycle', () => {
    const files = {
      'a.ts': "import { b } from './b.ts';\nimport { d } from './d.ts';",
      'b.ts': "import type { A } from './a.ts';\nimport { d } from './d.ts';",
      'd.ts': "import { type A, type B } from './a.ts';",
    };
    expect(find(files)).toEqual([]);
  });
});
