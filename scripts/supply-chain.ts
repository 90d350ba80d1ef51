/** Which packages Posthorn installs and bundles: read from package-lock.json, the console's imports and the guide's build. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CONSOLE_SOURCES } from './console-config.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
export const NOTICE_FILE = path.join(root, 'NOTICE');
export const DEPENDENCIES_FILE = path.join(root, 'docs/dependencies.md');

interface LockEntry {
  readonly name?: string;
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Lock {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

export const readLock = (): Lock =>
  JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8')) as Lock;

/** Finds the entry that `name` means for the package at `from`, as Node does: the nearest one upwards. */
function resolve({ packages }: Lock, from: string, name: string): string | null {
  for (
    let at = from;
    ;
    at = at.includes('node_modules/') ? at.slice(0, at.lastIndexOf('node_modules/')).replace(/\/$/, '') : ''
  ) {
    const candidate = at === '' ? `node_modules/${name}` : `${at}/node_modules/${name}`;
    if (packages[candidate] !== undefined) return candidate;
    if (at === '') return null;
  }
}

/** The entries of a package and of everything that it depends on. */
function closure(lock: Lock, start: string): Set<string> {
  const found = new Set<string>();
  const add = (entry: string | null): void => {
    if (entry === null || found.has(entry)) return;
    found.add(entry);
    const { dependencies, optionalDependencies } = lock.packages[entry]!;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
      add(resolve(lock, entry, name));
  };
  add(start);
  return found;
}

const nameOf = (entry: string): string => entry.slice(entry.lastIndexOf('node_modules/') + 13);

export interface ProductionDependency {
  readonly name: string;
  /** What it brings along, without itself. */
  readonly brings: readonly string[];
}

/** The direct dependencies of the published package, each with the packages that it brings along. */
export function productionDependencies(lock = readLock()): ProductionDependency[] {
  const direct = Object.keys(lock.packages['']!.dependencies ?? {});
  return direct.map((name) => {
    const brought = [...closure(lock, resolve(lock, '', name)!)].slice(1).map(nameOf);
    return { name, brings: [...new Set(brought)].sort() };
  });
}

/** `name@version` of every package that users install, or whose code the package contains. */
export function shippedPackages(lock = readLock()): Set<string> {
  const direct = Object.keys(lock.packages['']!.dependencies ?? {});
  const starts = [...direct, ...bundledPackages(lock)].map((name) => resolve(lock, '', name)!);
  const entries = starts.flatMap((start) => [...closure(lock, start)]);
  return new Set(entries.map((entry) => `${nameOf(entry)}@${lock.packages[entry]!.version}`));
}

/** Names of the packages whose code is in the console's bundle or in the guide. */
export function bundledPackages(lock = readLock()): string[] {
  const imported = new Set(packagesOfGuide());
  for (const file of readdirSync(path.join(CONSOLE_SOURCES, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!/(?<!\.test)\.tsx?$/.test(file)) continue;
    const text = readFileSync(path.join(CONSOLE_SOURCES, 'src', file), 'utf8');
    for (const [, name] of text.matchAll(/(?:from|import) '((?:@[^/']+\/)?[^./'][^/']*)[^']*'/g))
      imported.add(name!);
  }
  const entries = [...imported]
    .map((name) => resolve(lock, '', name))
    // Links are packages of this repository.
    .filter((entry) => entry !== null && lock.packages[entry]!.link !== true);
  return [...new Set(entries.flatMap((entry) => [...closure(lock, entry!)].map(nameOf)))].sort();
}

/** Names of the packages of which the build of the guide copies files. */
function packagesOfGuide(): string[] {
  const text = readFileSync(path.join(root, 'scripts/build-guide.ts'), 'utf8');
  return [...text.matchAll(/import\.meta\.resolve\('([^']+)'\)/g)].map(([, name]) => name!);
}

/** The licences of the bundled packages, as they require it. */
export function noticeText(lock = readLock()): string {
  const parts = bundledPackages(lock).map((name) => {
    const folder = path.join(root, 'node_modules', name);
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    const { version, license } = lock.packages[`node_modules/${name}`]!;
    const text = readFileSync(path.join(folder, file), 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  const line = '-'.repeat(78);
  return `Posthorn

Posthorn is licensed under the Apache License 2.0 (see LICENSE). Its console, dist/console, and its guide,
dist/guide, contain code of the following packages. This file is written by \`npm run docs:dependencies\`.

${line}
${parts.join(`\n${line}\n`)}`;
}

const BEGIN = '<!-- written by npm run docs:dependencies -->';
const END = '<!-- end -->';

/** docs/dependencies.md with its table of production dependencies brought up to date. */
export function dependenciesDocs(before: string, lock = readLock()): string {
  const all = productionDependencies(lock);
  const installed = new Set(all.flatMap(({ name, brings }) => [name, ...brings]));
  const rows = all
    .toSorted((a, b) => b.brings.length - a.brings.length)
    .map(({ name, brings }) => {
      const platforms = brings.filter((each) => (lock.packages[`node_modules/${each}`]?.os ?? []).length > 0);
      const others = brings.filter((each) => !platforms.includes(each)).map((each) => `\`${each}\``);
      const binaries =
        platforms.length === 0 ? [] : [`${platforms.length} platform packages, of which npm installs one`];
      return `| \`${name}\` | ${brings.length} | ${[...others, ...binaries].join(', ') || '–'} |`;
    });
  const table = [
    BEGIN,
    '',
    `The published package installs ${installed.size} packages, counting every platform. Several direct dependencies share some of them.`,
    '',
    '| dependency | brings | which |',
    '|---|---|---|',
    ...rows,
    '',
    END,
  ].join('\n');
  const [start, end] = [before.indexOf(BEGIN), before.indexOf(END)];
  if (start < 0 || end < 0) throw new Error('docs/dependencies.md lacks the marks around the table');
  return before.slice(0, start) + table + before.slice(end + END.length);
}
