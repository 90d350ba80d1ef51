import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createLog } from '../telemetry/log.ts';
import { makeSiblingsDirectory } from './siblings-directory.ts';

const log = createLog({ logLevel: 'silent', logFormat: 'json' });
const longAgo = new Date(Date.now() - 3_600_000);

test('a start removes the sockets of killed nodes and keeps those of running ones', async () => {
  const parent = await mkdtemp(path.join(tmpdir(), 'posthorn-test-'));
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  for (const name of [
    'posthorn-siblings-dead',
    'posthorn-siblings-alive',
    'posthorn-siblings-young',
    'other',
  ])
    await mkdir(path.join(parent, name));
  const server = createServer().listen(path.join(parent, 'posthorn-siblings-alive', '1.sock'));
  await new Promise((resolve) => server.once('listening', resolve));
  for (const name of ['posthorn-siblings-dead', 'posthorn-siblings-alive', 'other'])
    await utimes(path.join(parent, name), longAgo, longAgo);
  const made = await makeSiblingsDirectory(log, parent);
  expect((await readdir(parent)).toSorted()).toEqual(
    [path.basename(made!), 'other', 'posthorn-siblings-alive', 'posthorn-siblings-young'].toSorted(),
  );
  await new Promise((resolve) => server.close(resolve));
});
