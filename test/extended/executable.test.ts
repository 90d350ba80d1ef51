/** The commands of docs/operate/deploy.md, "One file": a file that holds Node, the program, the migrations and the console. */

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { ROOT } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { needs } from '../support/needs.ts';
import { temporaryDirectory } from '../support/postgres.ts';
import { ADMIN_KEY, newReceiver, TEST_SETTINGS } from '../support/posthorn.ts';

const POSTJECT = ['--yes', 'postject@1.0.0-alpha.6', '--help'];
const missing =
  process.platform !== 'linux'
    ? 'only the executable for Linux is built'
    : spawnSync('npx', POSTJECT).status === 0
      ? null
      : 'npm cannot download postject';

test(
  'the executable serves with two processes, delivers an event, has the console and runs converters',
  needs(missing),
  async () => {
    execFileSync(process.execPath, ['scripts/build-executable.ts'], { cwd: ROOT, stdio: 'ignore' });
    const program = path.join(ROOT, 'build/posthorn');
    expect((await stat(program)).size).toBeLessThan(200e6);

    const database = await createTestDatabase({ empty: true });
    const directory = await temporaryDirectory('posthorn-executable-');
    const archive = await temporaryDirectory('posthorn-archive-');
    const receiver = await newReceiver();
    const port = String(await freePort());
    // With types, and with an import of a file beside it.
    await writeFile(
      path.join(directory, 'posthorn.config.ts'),
      `import { joinName, type Name } from './names.ts';
       export default { converters: { 'order.created': {
         'v2→v1': ({ first, last, ...rest }: Name & { id: number }) => ({ ...rest, name: joinName({ first, last }) }),
         'v2→v0': () => { for (;;); } } } };`,
    );
    await writeFile(
      path.join(directory, 'names.ts'),
      `export interface Name { first: string; last: string }
       export const joinName = ({ first, last }: Name): string => first + ' ' + last;`,
    );
    const server = spawn(program, ['serve', '--processes', '2', '--port', port], {
      cwd: directory,
      env: {
        ...TEST_SETTINGS,
        DATABASE_URL: database.url,
        POSTHORN_ADMIN_KEY: ADMIN_KEY,
        POSTHORN_CONFIG: 'posthorn.config.ts',
        POSTHORN_ARCHIVE_URL: pathToFileURL(archive).href,
        POSTHORN_UPKEEP_MS: '500ms',
      },
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
    const send = async (method: string, place: string, body: unknown) => {
      const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
      return (await fetch(address + place, { method, headers, body: JSON.stringify(body) })).status;
    };
    const post = (place: string, body: unknown) => send('POST', place, body);
    expect(await post('/v1/endpoints', { url: receiver.url })).toBe(201);
    expect(await post('/v1/events', { type: 'order.created', data: 1 })).toBe(202);
    await receiver.waitFor(1);
    expect(await (await fetch(`${address}/console/`)).text()).toContain('<div id="root">');

    // VER-2: a converter process is the executable itself. One that hangs is ended and replaced.
    for (const version of ['v0', 'v1', 'v2'])
      expect(await send('PUT', `/v1/event-types/order.created/versions/${version}`, { schema: {} })).toBe(
        201,
      );
    const pinned = await newReceiver();
    const hanging = { url: pinned.url, tenant: 'acme', api_version: 'v0', retry: { schedule: [0] } };
    expect(await post('/v1/endpoints', hanging)).toBe(201);
    expect(await post('/v1/endpoints', { url: pinned.url, tenant: 'acme', api_version: 'v1' })).toBe(201);
    const data = { id: 1, first: 'Ann', last: 'Lee' };
    const event = { type: 'order.created', tenant: 'acme', schema_version: 'v2', data };
    for (let count = 1; count <= 2; count += 1) {
      expect(await post('/v1/events', event)).toBe(202);
      await pinned.waitFor(count);
    }
    expect(pinned.requests.map((request) => request.json().data)).toEqual([
      { id: 1, name: 'Ann Lee' },
      { id: 1, name: 'Ann Lee' },
    ]);

    // LIF-2: so is the archive process. Its first run claims the archive.
    await eventually(
      'the archive is claimed',
      async () => (await readdir(archive)).includes('archive.json'),
      {
        timeoutMs: 30_000,
        saw: () => output,
      },
    );
    expect(output).not.toContain('the archive process failed');
  },
);
