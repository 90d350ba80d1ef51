/**
 * The package as users get it: the commands of README.md on a clean copy of the checkout, then `npm pack` and the
 * tarball in another directory. npm uses its cache as far as possible.
 */

import { execFileSync, type SpawnOptions, spawn } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { cleanEnvironment, copyCheckout } from '../support/clone.ts';
import { readBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startReceiver } from '../support/receiver.ts';

/** npm may have to download packages that are not in its cache, and what the registry says about each of them. */
const INSTALL_MS = 900_000;
const PRINTED_MS = 800_000;
const [START, INSTALL] = readBlocks('README.md')
  .filter(({ options }) => options['run-by'] === 'test/extended/package.test.ts')
  .map(({ text }) => text);

let home: string;
let clone: string;

beforeAll(async () => {
  // All users may enter it: root runs PostgreSQL as another user.
  home = await realpath(await mkdtemp(path.join(tmpdir(), 'posthorn-package-')));
  execFileSync('chmod', ['755', home]);
  clone = path.join(home, 'clone');
  await copyCheckout(clone);
}, INSTALL_MS);
afterAll(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));

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
    const env = { ...cleanEnvironment(home), PORT: String(await freePort()) };
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
    const env = { ...cleanEnvironment(home, path.dirname(process.execPath)), PORT: String(await freePort()) };
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
