/** Finds cycles among the run-time imports of modules. Type-only imports do not count: the compiler removes them. */
import path from 'node:path';
import type { Module } from './import-rules.ts';

const STATEMENT = /^(?:import|export)\s+(type\s+)?(?:([\w$*{},\s]+?)\s+from\s+)?['"](\.[^'"]+)['"]/gm;

/** Returns every cycle as the list of its files. */
export function findImportCycles(modules: readonly Module[]): string[][] {
  const imports = new Map(modules.map((module) => [module.file, listRuntimeImports(module)]));
  const cycles: string[][] = [];
  const finished = new Set<string>();
  const visit = (file: string, trail: readonly string[]): void => {
    const start = trail.indexOf(file);
    if (start !== -1) cycles.push(trail.slice(start));
    if (start !== -1 || finished.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...trail, file]);
    finished.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return cycles;
}

/** The relative imports that remain at run time, as paths from the root of the repository. */
function listRuntimeImports({ file, text }: Module): string[] {
  return [...text.matchAll(STATEMENT)]
    .filter(([, type, names = '']) => type === undefined && !hasOnlyTypes(names))
    .map(([, , , specifier]) => path.posix.join(path.posix.dirname(file), specifier!));
}

/** Whether all names in the braces are types: `{ type A, type B }`. */
function hasOnlyTypes(names: string): boolean {
  const inBraces = /^\{([^}]*)\}$/.exec(names.trim())?.[1];
  if (inBraces === undefined) return false;
  const parts = inBraces.split(',').filter((part) => part.trim() !== '');
  return parts.length > 0 && parts.every((part) => /^\s*type\s/.test(part));
}
