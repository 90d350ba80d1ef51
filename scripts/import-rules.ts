/**
 * Who may import whom. Imports point down:
 *
 *   cli → app.ts, relay → api → manage → stages → telemetry, catalogue → config → ports → domain
 *                                └──→ postgres ──→ telemetry → …
 *
 * - manage is the control plane: what a caller can change, with its rules. The CLI may call it without the API.
 * - Stages (ingest, outbox, kafka, dispatch, convert, deliver, settle, upkeep) never import each other: create-ingest.ts,
 *   create-engine.ts and compose-app.ts connect them through interfaces of src/ports, or of the stage itself.
 * - Stages know the store through src/ports only.
 * - From above, a stage, the relay and the configuration are imported through their index.ts only.
 * - The relay is a process of its own that reads another PostgreSQL. Of src's wiring it uses create-ingest.ts.
 * - The archive is a process of its own too. It knows the store through src/ports.
 * - The embedded server and the migrations are for the files directly in src and the CLI alone. `pg` is for src/postgres and the CLI.
 * - redis implements ports on Redis: create-redis.ts connects it, and the CLI checks it. `@redis/client` is for src/redis.
 * - memory implements the ports for tests and the simulation; nothing else in src imports it.
 * - The domain is pure: no packages.
 * - Nothing in src imports tests, or anything outside of src. Console and packages import nothing from src.
 * - No modules import each other in a circle at run time (`import-cycles.ts`).
 * Tests are exempt.
 */
import path from 'node:path';

export interface Module {
  /** Path from the root of the repository, with slashes. */
  readonly file: string;
  readonly text: string;
}

const STAGES = ['ingest', 'outbox', 'kafka', 'dispatch', 'convert', 'deliver', 'settle', 'upkeep'] as const;
const BELOW_STAGES = ['catalogue', 'ports', 'telemetry', 'config', 'domain'];

/** What each part may import, besides itself. `app` is every file directly in src. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  ports: ['domain'],
  config: ['domain'],
  telemetry: ['ports', 'config', 'domain'],
  catalogue: ['ports', 'domain'],
  postgres: ['ports', 'telemetry', 'config', 'domain'],
  memory: ['ports', 'domain'],
  redis: ['ports', 'domain'],
  ...Object.fromEntries(STAGES.map((stage) => [stage, BELOW_STAGES])),
  manage: [...STAGES, 'postgres', ...BELOW_STAGES],
  api: ['manage', ...STAGES, 'postgres', ...BELOW_STAGES],
  app: ['api', 'manage', ...STAGES, 'postgres', 'redis', ...BELOW_STAGES],
  archive: BELOW_STAGES,
  relay: ['app', ...STAGES, 'postgres', ...BELOW_STAGES],
  cli: ['app', 'relay', 'archive', 'manage', 'postgres', 'redis', ...BELOW_STAGES],
};

/** Imported from outside through their index.ts only. */
const CLOSED = new Set<string>([...STAGES, 'relay', 'archive', 'config', 'redis']);

/** Loads the file of the operator, whose name is a setting. */
const LOADS_CONFIG_FILE = 'src/convert/import-module.ts';

const isTest = (file: string): boolean => /\.test\.ts$|\/testing\//.test(file);
const isStage = (part: string): boolean => (STAGES as readonly string[]).includes(part);

/** Violations of one module, in words. */
export function checkModule(module: Module): string[] {
  if (isTest(module.file)) return [];
  const complaints: string[] = [];
  for (const specifier of importsOf(module.text)) {
    const complaint = module.file.startsWith('src/')
      ? checkInSource(module.file, specifier)
      : checkOutside(module.file, specifier);
    if (complaint !== null) complaints.push(`${module.file} imports ${specifier}: ${complaint}`);
  }
  return complaints;
}

function checkInSource(file: string, specifier: string): string | null {
  const from = partOf(file);
  const allowed = MAY_IMPORT[from];
  if (allowed === undefined)
    return `src/${from} has no place among the layers; give it one in scripts/import-rules.ts`;
  if (specifier === COMPUTED && file === LOADS_CONFIG_FILE) return null;
  if (specifier === COMPUTED) return 'an import must name its module';
  if (!specifier.startsWith('.')) return checkPackage(from, specifier);

  const target = resolve(file, specifier);
  if (!target.startsWith('src/')) return 'src imports nothing from outside of src';
  if (isTest(target)) return 'only tests import tests and their helpers';
  const to = partOf(target);
  if (to === from) return null;
  if (isStage(from) && isStage(to))
    return 'stages never import each other; the create-*.ts files of src connect them';
  if (isStage(from) && to === 'postgres' && !allowed.includes(to))
    return 'stages know the store through src/ports';
  if (from === 'relay' && to === 'app' && target !== 'src/create-ingest.ts')
    return 'the relay uses create-ingest.ts alone';
  if (!allowed.includes(to)) return `${from} may not import ${to}`;
  if (CLOSED.has(to) && target !== `src/${to}/index.ts`) return `${to} is imported through its index.ts`;
  const isWiring = from === 'app' || from === 'cli';
  if (!isWiring && /^src\/postgres\/(embedded\/|migrate\.ts$)/.test(target))
    return 'only the files directly in src and the CLI start databases';
  return null;
}

function checkPackage(from: string, specifier: string): string | null {
  if (specifier.startsWith('node:')) return null;
  if (from === 'domain') return 'the domain is pure: no packages';
  if (/^pg($|\/|-)/.test(specifier) && from !== 'postgres' && from !== 'cli') return 'pg is for src/postgres';
  if (specifier.startsWith('@redis/') && from !== 'redis') return '@redis/client is for src/redis';
  return null;
}

function checkOutside(file: string, specifier: string): string | null {
  const isOurs = file.startsWith('console/') || file.startsWith('packages/');
  if (!isOurs || !specifier.startsWith('.')) return null;
  return resolve(file, specifier).startsWith('src/') ? 'console and packages import nothing from src' : null;
}

function resolve(file: string, specifier: string): string {
  return path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier));
}

/** `src/deliver/egress/guard.ts` belongs to `deliver`, `src/app.ts` to `app`. */
export function partOf(file: string): string {
  const [, first, ...rest] = file.split('/');
  return rest.length === 0 ? 'app' : first!;
}

const COMPUTED = '(computed)';

// The formatter puts every statement at the start of a line, so regular expressions are enough. No parser understands
// TypeScript 7 yet: existing tools find no modules and report success.
const STATIC = /^(?:import|export)\s+(?:type\s+)?(?:[\w$*{},\s]+?\s+from\s+)?['"]([^'"]+)['"]/gm;
const DYNAMIC = /\bimport\(\s*(?:['"]([^'"]+)['"]|[^'"\s])/g;
const COMMENT_LINE = /^\s*(?:\/\/|\/?\*).*$/gm;

export function importsOf(text: string): string[] {
  const code = text.replace(COMMENT_LINE, '');
  const statics = [...code.matchAll(STATIC)].map((match) => match[1]!);
  const dynamics = [...code.matchAll(DYNAMIC)].map((match) => match[1] ?? COMPUTED);
  return [...statics, ...dynamics];
}

/** `import type …` and `import { type A, type B }`: nothing is left of them at run time. */
const TYPE_ONLY =
  /^(?:import|export)\s+(?:type\s|\{\s*type\s+[\w$]+(?:\s+as\s+[\w$]+)?(?:,\s*type\s+[\w$]+(?:\s+as\s+[\w$]+)?)*,?\s*\}\s*from)/;

/** The static imports that load a module. A dynamic one loads it later, when the importing module is complete. */
export function runTimeImportsOf(text: string): string[] {
  return [...text.replace(COMMENT_LINE, '').matchAll(STATIC)]
    .filter(([statement]) => !TYPE_ONLY.test(statement))
    .map((match) => match[1]!);
}
