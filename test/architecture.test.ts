import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findImportCycles } from '../scripts/import-cycles.ts';
import { checkModule, importsOf, type Module, partOf, runTimeImportsOf } from '../scripts/import-rules.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

function readModules(folder: string): Module[] {
  const base = path.join(root, folder);
  if (!existsSync(base)) return [];
  return readdirSync(base, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx|mts|js|mjs)$/.test(entry.name))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll(path.sep, '/'))
    .filter((file) => !/(^|\/)(node_modules|dist)\//.test(file))
    .map((file) => ({ file, text: readFileSync(path.join(root, file), 'utf8') }));
}

const source = readModules('src');
const clients = [...readModules('console'), ...readModules('packages')];
const isTest = ({ file }: Module): boolean => file.endsWith('.test.ts');

describe('import rules', () => {
  it('hold in every module', () => {
    expect([...source, ...clients].flatMap(checkModule)).toEqual([]);
  });

  it('no modules import each other in a circle at run time', () => {
    expect(findImportCycles([...source, ...clients])).toEqual([]);
  });

  it('were checked on real modules, in every folder that has some', () => {
    const seen = new Set(source.filter((module) => !isTest(module)).map(({ file }) => partOf(file)));
    const folders = readdirSync(path.join(root, 'src'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && readdirSync(path.join(root, 'src', entry.name)).length > 0)
      .map((entry) => entry.name);
    expect(folders).toEqual(expect.arrayContaining(['domain', 'config', 'cli', 'deliver', 'postgres']));
    for (const folder of folders) expect(seen).toContain(folder);
    expect(source.length).toBeGreaterThan(50);
  });

  it('OBS-3: OpenTelemetry is known to one module, which nobody loads unless tracing is on', () => {
    const modules = source.filter((module) => !isTest(module));
    const knows = modules.filter(({ text }) =>
      importsOf(text).some((name) => name.startsWith('@opentelemetry/')),
    );
    expect(knows.map(({ file }) => file)).toEqual(['src/telemetry/otel-tracer.ts']);
    const loads = modules.filter(({ text }) =>
      importsOf(text).some((name) => name.endsWith('/otel-tracer.ts')),
    );
    expect(loads.map(({ file }) => file)).toEqual(['src/create-tracer.ts']);
    expect(loads[0]!.text).toMatch(/await import\('\.\/telemetry\/otel-tracer\.ts'\)/);
    expect(loads[0]!.text).not.toMatch(/from '\.\/telemetry\/otel-tracer\.ts'/);
  });

  it('missed no import statement', () => {
    // Counted another way: every statement ends in a quoted name, on the line of its `from` or of its `import`.
    const endings = /^(?:import|export|\}).*?(?:\bfrom |^import )['"][^'"]+['"]/gm;
    for (const { file, text } of source) {
      const found = importsOf(text.replace(/\bimport\(/g, 'load(')).length;
      expect({ file, found }).toEqual({ file, found: text.match(endings)?.length ?? 0 });
    }
  });
});

describe('the checker', () => {
  const check = (file: string, text: string): string[] => checkModule({ file, text });

  it.each([
    [
      'src/domain/event.ts',
      "import { query } from '../postgres/database.ts';",
      'domain may not import postgres',
    ],
    ['src/domain/event.ts', "import pino from 'pino';", 'the domain is pure'],
    [
      'src/postgres/database.ts',
      "import { accept } from '../ingest/index.ts';",
      'postgres may not import ingest',
    ],
    [
      'src/postgres/queries/x.ts',
      "import type { Route } from '../../api/index.ts';",
      'postgres may not import api',
    ],
    ['src/telemetry/log.ts', "import '../postgres/database.ts';", 'telemetry may not import postgres'],
    [
      'src/dispatch/lane.ts',
      "import { attempt } from '../deliver/index.ts';",
      'stages never import each other',
    ],
    [
      'src/dispatch/lane.ts',
      "import type { Settler } from '../settle/settler.ts';",
      'stages never import each other',
    ],
    [
      'src/dispatch/refill.ts',
      "import type { Pool } from '../postgres/database.ts';",
      'stages know the store through src/ports',
    ],
    ['src/settle/settler.ts', "export * from '../dispatch/index.ts';", 'stages never import each other'],
    ['src/deliver/attempt.ts', "import type { Pool } from '../postgres/database.ts';", 'through src/ports'],
    [
      'src/deliver/egress/guard.ts',
      "const x = await import('../../postgres/database.ts');",
      'through src/ports',
    ],
    ['src/deliver/attempt.ts', "import pg from 'pg';", 'pg is for src/postgres'],
    [
      'src/dispatch/bus-links.ts',
      "import { RedisBus } from '../redis/index.ts';",
      'dispatch may not import redis',
    ],
    ['src/app.ts', "import { createClient } from '@redis/client';", '@redis/client is for src/redis'],
    [
      'src/ingest/accept.ts',
      "import type { Pool } from '../postgres/database.ts';",
      'stages know the store through src/ports',
    ],
    [
      'src/outbox/drainer.ts',
      "import { readOutbox } from '../postgres/queries/outbox.ts';",
      'through src/ports',
    ],
    ['src/relay/start-relay.ts', "import { startApp } from '../app.ts';", 'create-ingest.ts alone'],
    ['src/cli/x.ts', "import { Relay } from '../relay/relay.ts';", 'relay is imported through its index.ts'],
    ['src/ingest/accept.ts', "import { start } from '../app.ts';", 'ingest may not import app'],
    [
      'src/ingest/accept.ts',
      "import { x } from '../config/settings.ts';",
      'config is imported through its index.ts',
    ],
    [
      'src/relay/relay.ts',
      "import { migrate } from '../postgres/migrate.ts';",
      'and the CLI start databases',
    ],
    [
      'src/api/server.ts',
      "import { x } from '../postgres/embedded/index.ts';",
      'and the CLI start databases',
    ],
    [
      'src/api/events.ts',
      "import { accept } from '../ingest/accept.ts';",
      'ingest is imported through its index.ts',
    ],
    ['src/api/events.ts', "import { print } from '../cli/print.ts';", 'api may not import cli'],
    [
      'src/manage/endpoints.ts',
      "import type { NewEndpoint } from '../api/endpoints/schema.ts';",
      'manage may not import api',
    ],
    ['src/settle/tasks.ts', "import { Tasks } from '../manage/tasks.ts';", 'settle may not import manage'],
    ['src/app.ts', "import { Lane } from './dispatch/lane.ts';", 'dispatch is imported through its index.ts'],
    ['src/app.ts', "import { print } from './cli/print.ts';", 'app may not import cli'],
    ['src/app.ts', "import { receiver } from '../test/support/receiver.ts';", 'nothing from outside of src'],
    ['src/cli/main.ts', "import { bench } from './testing/run-cli.ts';", 'only tests import tests'],
    ['src/cli/main.ts', 'await import(name);', 'an import must name its module'],
    ['src/cli/main.ts', "import { accept } from '../ingest/index.ts';", 'cli may not import ingest'],
    ['src/surprise/x.ts', "import { x } from './y.ts';", 'has no place among the layers'],
    ['console/src/api.ts', "import type { Event } from '../../src/domain/event.ts';", 'console and packages'],
    [
      'packages/verify/src/index.ts',
      "export { sign } from '../../../src/deliver/sign.ts';",
      'console and packages',
    ],
  ])('catches %s: %s', (file, text, complaint) => {
    expect(check(file, text)).toEqual([expect.stringContaining(complaint)]);
  });

  it.each([
    ['src/domain/event.ts', "import { randomBytes } from 'node:crypto';\nimport { x } from './ids.ts';"],
    [
      'src/ingest/accept.ts',
      "import type { EventStore } from '../ports/event-store.ts';\nimport type { Log } from '../telemetry/log.ts';",
    ],
    ['src/deliver/attempt.ts', "import { Agent } from 'undici';\nimport { guard } from './egress/guard.ts';"],
    ['src/api/events.ts', "import { accept } from '../ingest/index.ts';"],
    ['src/api/keys/routes.ts', "import { Keys } from '../../manage/keys.ts';"],
    ['src/manage/keys.ts', "import { readTenant } from '../ingest/index.ts';"],
    ['src/cli/commands/x.ts', "import { rotate } from '../../manage/encryption-key.ts';"],
    [
      'src/app.ts',
      "import { a } from './dispatch/index.ts';\nimport { migrate } from './postgres/migrate.ts';",
    ],
    ['src/cli/dev.ts', "const { startApp } = await import('../app.ts');"],
    [
      'src/relay/start-relay.ts',
      "import { createIngest } from '../create-ingest.ts';\nimport { openDatabase } from '../postgres/database.ts';",
    ],
    ['src/dispatch/lane.test.ts', "import { attempt } from '../deliver/attempt.ts';"],
    ['packages/verify/src/index.ts', "export { sign } from './sign.ts';"],
    ['test/e2e/x.test.ts', "import { startApp } from '../../src/app.ts';"],
  ])('lets pass %s: %s', (file, text) => {
    expect(check(file, text)).toEqual([]);
  });

  it('reads every form of import, and no comment', () => {
    const text = `
import './a.ts';
import b from './b.ts';
import type { C } from "./c.ts";
import d, { type E } from './d.ts';
import * as f from './f.ts';
import {
  g,
  type H,
} from './g.ts';
import data from './data.json' with { type: 'json' };
export { i } from './i.ts';
export type { J } from './j.ts';
export * from './k.ts';
export * as l from './l.ts';
export const m = 'not an import';
export function n() { return import('./n.ts'); }
type O = typeof import('./o.ts');
// import { p } from './p.ts';
/** import('./q.ts') */
 * import('./r.ts')
`;
    expect(importsOf(text)).toEqual(
      [
        'a.ts',
        'b.ts',
        'c.ts',
        'd.ts',
        'f.ts',
        'g.ts',
        'data.json',
        'i.ts',
        'j.ts',
        'k.ts',
        'l.ts',
        'n.ts',
        'o.ts',
      ].map((name) => `./${name}`),
    );
  });

  it('counts no import that only brings types as one of run time', () => {
    const text = `
import './a.ts';
import type { B } from './b.ts';
import { type C } from './c.ts';
import {
  type D,
  type E as F,
} from './d.ts';
import { type G, h } from './g.ts';
export type { I } from './i.ts';
export * from './j.ts';
export const load = () => import('./k.ts');
`;
    expect(runTimeImportsOf(text)).toEqual(['./a.ts', './g.ts', './j.ts']);
  });

  it('finds circles of imports, also long ones, and names all modules of each', () => {
    const modules = Object.entries({
      'src/a.ts': "import { b } from './x/b.ts';",
      'src/x/b.ts': "import { c } from '../c.ts';",
      'src/c.ts': "import { a } from './a.ts';\nimport { d } from './d.ts';",
      'src/d.ts': "import type { A } from './a.ts';",
      'src/e.ts': "import { e } from './e.ts';",
    }).map(([file, text]) => ({ file, text }));
    expect(findImportCycles(modules)).toEqual([['src/a.ts', 'src/c.ts', 'src/x/b.ts'], ['src/e.ts']]);
  });
});
