/**
 * The package as users get it: the commands of README.md on a clean copy of the checkout, then `npm pack` and the
 * tarball in another directory. npm uses its cache as far as possible.
 */
import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ROOT, readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/posthorn.ts';
import { startReceiver } from '../support/receiver.ts';

/** npm may have to download packages that are not in its cache. */
const INSTALL_MS = 600_000;
const PRINTED_MS = 280_000;
const [START, INSTALL] = readBlocks('README.md')
  .filter(({ options }) => options['run-by'] === 'test/extended/package.test.ts')
  .map(({ text }) => text);

let home: string;
let clone: string;
let cache: string;

beforeAll(async () => {
  // All users may enter it: root runs PostgreSQL as another user.
  home = await realpath(await mkdtemp(path.join(tmpdir(), 'posthorn-package-')));
  execFileSync('chmod', ['755', home]);
  clone = path.join(home, 'clone');
  cache = execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim();
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of files.split('\0').filter(Boolean))
    await cp(path.join(ROOT, file), path.join(clone, file)).catch((error: NodeJS.ErrnoException) => {
      // A file that was deleted, but not yet committed.
      if (error.code !== 'ENOENT') throw error;
    });
}, INSTALL_MS);
afterAll(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));

/** Contains nothing of this checkout: neither its programs nor its npm settings. */
function environment(node = ''): Record<string, string> {
  const folders = (process.env.PATH ?? '')
    .split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'));
  return {
    PATH: [...(node === '' ? [] : [node]), ...folders].join(path.delimiter),
    HOME: home,
    npm_config_cache: cache,
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
  };
}

function start(script: string, options: SpawnOptions) {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
  let isRunning = true;
  void ended.then(() => {
    isRunning = false;
  });
  const stop = async (): Promise<void> => {
    if (isRunning) process.kill(-child.pid!, 'SIGTERM');
    await ended;
  };
  onTestFinished(stop);
  return {
    stop,
    output: () => output,
    untilPrinted: (pattern: RegExp) =>
      eventually(
        `it prints ${pattern}`,
        () => {
          const found = pattern.exec(output)?.[1];
          if (found === undefined && !isRunning) throw new Error(`It ended:\n${output}`);
          return found;
        },
        { timeoutMs: PRINTED_MS, saw: () => output },
      ),
  };
}

async function expectConsole(url: string): Promise<void> {
  const page = await fetch(url, { headers: { accept: 'text/html' } });
  expect(page.status).toBe(200);
  expect(page.url).toBe(`${url}/console`);
  const html = await page.text();
  const script = /src="(\/console\/assets\/[^"]+\.js)"/.exec(html)?.[1];
  expect(script, html).toBeDefined();
  expect((await fetch(`${url}${script}`)).status).toBe(200);
}

test(
  'README.md: npm ci && npm start on a clean clone starts a server with its console',
  async () => {
    const env = { ...environment(), PORT: String(await freePort()) };
    const started = start(START!, { cwd: clone, env });
    const url = await started.untilPrinted(/API\s+(http:\/\/\S+)\/v1/);
    await expectConsole(url);
    await started.stop();
  },
  INSTALL_MS,
);

test(
  'README.md: after npm pack and an installation elsewhere, dev delivers a webhook, serves the console, and doctor finds no problem',
  async () => {
    const env = { ...environment(path.dirname(process.execPath)), PORT: String(await freePort()) };
    const started = start(INSTALL!, { cwd: clone, env });
    const url = await started.untilPrinted(/API\s+(http:\/\/\S+)\/v1/);
    const key = await started.untilPrinted(/Admin key\s+(\S+)/);
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    const post = (address: string, body: unknown) =>
      fetch(`${url}${address}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    expect((await post('/v1/endpoints', { url: receiver.url })).status).toBe(201);
    expect((await post('/v1/events', { type: 'order.created', data: { order: 42 } })).status).toBe(202);
    expect((await receiver.waitFor(1))[0]!.body.toString()).toContain('"data":{"order":42}');
    await expectConsole(url);

    const installed = path.join(home, 'posthorn');
    const doctor = JSON.parse(
      execFileSync('npx', ['posthorn', 'doctor', '--json'], { cwd: installed, env, encoding: 'utf8' }),
    );
    expect(doctor.checks).toContainEqual(expect.objectContaining({ check: 'Database', state: 'ok' }));
    // No development packages are installed, such as the compiler.
    const packages = execFileSync('ls', [path.join(installed, 'node_modules')], { encoding: 'utf8' });
    expect(packages).not.toMatch(/^(typescript|vite|node)$/m);
    await started.stop();
  },
  INSTALL_MS,
);
