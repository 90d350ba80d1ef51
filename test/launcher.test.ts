/** The command `posthorn` on a Node that is too old for Posthorn. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from './support/eventually.ts';
import { NOT_LINUX, needs } from './support/needs.ts';
import { isAlive } from './support/process-tree.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'posthorn-launcher-'));
  await cp(path.join(ROOT, 'bin'), path.join(folder, 'bin'), { recursive: true });
  await cp(path.join(ROOT, 'package.json'), path.join(folder, 'package.json'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** What tells the launcher which Node it runs on says 20.20.2. */
const OLD = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.2'}})`;

const options = { env: { PATH: process.env.PATH, NODE_OPTIONS: `--import=${OLD}` } };

async function writePinnedNode(script: string): Promise<void> {
  const node = path.join(folder, 'node_modules/node');
  await mkdir(path.join(node, 'bin'), { recursive: true });
  await writeFile(path.join(node, 'package.json'), '{"version": "24.1.0"}');
  await writeFile(path.join(node, 'bin/node'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

function launch(args: string[]): Promise<{ code: unknown; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [path.join(folder, 'bin/posthorn.js'), ...args],
      options,
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
  });
}

it('says which Node is needed, and how to get one', async () => {
  const { code, stderr } = await launch(['serve', '--processes', '4']);
  expect(code).toBe(1);
  expect(stderr).toContain('Posthorn needs Node 22.18 or later; this is 20.20.2.');
  expect(stderr).toContain('npx -p node@24 -p posthorn posthorn serve --processes 4');
});

it('runs on the Node that npm has installed beside it, and ends with its exit code', async () => {
  await writePinnedNode('shift\necho "24 runs $*"\nexit 7');
  expect(await launch(['dev', '--port', '1'])).toMatchObject({ code: 7, stdout: '24 runs dev --port 1\n' });
});

it('takes the Node that it has started along when it is killed', needs(NOT_LINUX), async () => {
  await writePinnedNode(`unset NODE_OPTIONS\nexec '${process.execPath}' "$@"`);
  await mkdir(path.join(folder, 'dist/cli'), { recursive: true });
  await writeFile(
    path.join(folder, 'dist/cli/main.js'),
    'setInterval(() => {}, 60_000); console.log(process.pid, process.env.POSTHORN_LAUNCHER_PID);',
  );
  const launcher = spawn(process.execPath, [path.join(folder, 'bin/posthorn.js'), 'serve'], options);
  const [line] = (await once(launcher.stdout, 'data')) as [Buffer];
  const [pid, inherited] = line.toString().trim().split(' ');
  expect(Number(pid)).not.toBe(launcher.pid);
  expect(inherited).toBe('undefined');
  launcher.kill('SIGKILL');
  await eventually('both have ended', () => !isAlive(launcher.pid!) && !isAlive(Number(pid)));
});
