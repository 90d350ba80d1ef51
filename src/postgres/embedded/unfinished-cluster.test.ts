import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NOT_LINUX, needs } from '../../../test/support/needs.ts';
import { temporaryDirectory } from './testing/support.ts';
import { clearUnfinished } from './unfinished-cluster.ts';

test('an unfinished cluster is not deleted while a process still works in it', needs(NOT_LINUX), async () => {
  const unfinished = path.join(await temporaryDirectory(), 'postgres.new-1');
  await mkdir(path.join(unfinished, 'cluster'), { recursive: true });
  // Like the postgres of initdb: ends at the end of its input.
  const worker = spawn('cat', {
    cwd: path.join(unfinished, 'cluster'),
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  onTestFinished(() => void worker.kill('SIGKILL'));
  const order: string[] = [];
  const ended = once(worker, 'exit').then(() => order.push('worker ended'));
  const cleared = clearUnfinished(unfinished).then(() => order.push('cleared'));
  await stat(unfinished);
  worker.stdin.end();
  await Promise.all([ended, cleared]);
  expect(order).toEqual(['worker ended', 'cleared']);
  await expect(stat(unfinished)).rejects.toThrow('ENOENT');
});
