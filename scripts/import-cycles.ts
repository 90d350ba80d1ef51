/** Finds modules that import each other in a circle at run time. Type-only imports do not count: they are erased. */
import path from 'node:path';
import { type Module, runTimeImportsOf } from './import-rules.ts';

/** Every group of modules that reach each other through imports, as a sorted list of files. */
export function findImportCycles(modules: readonly Module[]): string[][] {
  const files = new Set(modules.map(({ file }) => file));
  const graph = new Map(
    modules.map(({ file, text }) => [
      file,
      runTimeImportsOf(text)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => path.posix.join(path.posix.dirname(file), specifier))
        .filter((target) => files.has(target)),
    ]),
  );
  return stronglyConnected(graph).filter(
    ([first, ...others]) => others.length > 0 || graph.get(first!)!.includes(first!),
  );
}

/** Tarjan's algorithm. */
function stronglyConnected(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const groups: string[][] = [];
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];

  function visit(file: string): void {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    stack.push(file);
    for (const target of graph.get(file)!) {
      if (!order.has(target)) visit(target);
      if (stack.includes(target)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(target)!));
    }
    if (lowest.get(file) === order.get(file)) groups.push(stack.splice(stack.indexOf(file)).toSorted());
  }

  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return groups;
}
