/** The commands of docs/operate/deploy.md, "One file": a file that holds Node, the program, the migrations and the console. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { ROOT } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import { ADMIN_KEY, freePort, newReceiver, TEST_SETTINGS } from '../support/posthorn.ts';

const POSTJECT = ['--yes', 'postject@1.0.0-alpha.6', '--help'];
const missing =
  process.platform !== 'linux'
    ? 'only the executable for Linux is built'
    : spawnSync('npx', POSTJECT).status === 0
      ? null
      : 'npm cannot download postject';

test(
  'the executable serves with two processes, delivers an event and has the console',
  needs(missing),
  async () => {
    execFileSync(process.execPath, ['scripts/build-executable.ts'], { cwd: ROOT, stdio: 'ignore' });
    const program = path.join(ROOT, 'build/posthorn');
    expect((await stat(program)).size).toBeLessThan(200e6);

    const database = await createTestDatabase({ empty: true });
    const directory = await temporaryDirectory('posthorn-executable-');
    const receiver = await newReceiver();
    const port = String(await freePort());
    const server = spawn(program, ['serve', '--processes', '2', '--port', port], {
      cwd: directory,
      env: { ...TEST_SETTINGS, DATABASE_URL: database.url, POSTHORN_ADMIN_KEY: ADMIN_KEY },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [server.stdout, server.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
      });
    const ended = new Promise((resolve) => server.on('exit', resolve));
    onTestFinished(async () => {
      server.kill('SIGTERM');
      await ended;
      await database.drop();
    });

    const address = `http://127.0.0.1:${port}`;
    const isReady = async () => (await fetch(`${address}/readyz`).catch(() => null))?.ok ?? false;
    await eventually('the executable is ready', isReady, { timeoutMs: 60_000, saw: () => output });
    const post = async (place: string, body: unknown) => {
      const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
      return (await fetch(address + place, { method: 'POST', headers, body: JSON.stringify(body) })).status;
    };
    expect(await post('/v1/endpoints', { url: receiver.url })).toBe(201);
    expect(await post('/v1/events', { type: 'order.created', data: 1 })).toBe(202);
    await receiver.waitFor(1);
    expect(await (await fetch(`${address}/console/`)).text()).toContain('<div id="root">');
  },
);
