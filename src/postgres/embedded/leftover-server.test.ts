import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NOT_LINUX, needs } from '../../../test/support/needs.ts';
import { findBinaries } from './binaries.ts';
import { findHome } from './home.ts';
import { clearLeftoverServer } from './leftover-server.ts';
import {
  filledDataDirs,
  forkPosthorn,
  isAlive,
  newDataDir,
  postmasterPid,
  query,
  start,
  startProcess,
  until,
} from './testing/support.ts';

const usedDataDir = filledDataDirs();

test('the server of a killed Posthorn is stopped by the next start, and its data is there', async () => {
  const dataDir = await usedDataDir();
  const killed = await startProcess({ dataDir });
  await query(killed, `create table more as select 'committed' as text`);
  const orphan = await postmasterPid(dataDir);
  await killed.end('SIGKILL');
  expect(isAlive(orphan), 'the server outlived its Posthorn').toBe(true);

  const next = await start({ dataDir });
  expect(isAlive(orphan)).toBe(false);
  expect(await query(next, 'select * from more')).toEqual([{ text: 'committed' }]);
  expect(next.lines).toEqual([
    expect.stringMatching(
      `^Stopped the PostgreSQL \\(process ${orphan}\\) that a killed Posthorn had left running`,
    ),
  ]);
});

test('when Posthorn and its server are both killed, the next start recovers', async () => {
  const dataDir = await usedDataDir();
  const killed = await startProcess({ dataDir });
  await query(killed, `create table more as select 'committed' as text`);
  const orphan = await postmasterPid(dataDir);
  await killed.end('SIGKILL');
  process.kill(orphan, 'SIGKILL');
  const next = await start({ dataDir });
  expect(await query(next, 'select * from more')).toEqual([{ text: 'committed' }]);
});

/** Returns when the process is stopped. Until then it would still take other signals, on a busy machine for a long time. */
async function suspend(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  await until(async () => /^State:\s+T/m.test(await readFile(`/proc/${pid}/status`, 'utf8')));
}

test(
  'a zombie of a server that was killed during its shutdown does not block the next start',
  needs(NOT_LINUX),
  async () => {
    const dataDir = await usedDataDir();
    const parent = await startProcess({ dataDir });
    const home = await findHome(dataDir, '/nonexistent', () => {});
    const server = await postmasterPid(dataDir);
    // Suspended, neither of them reacts: the server does not shut down, and its parent does not reap it.
    await suspend(parent.child.pid!);
    await suspend(server);
    const cleared = clearLeftoverServer(home, () => {});
    const isAskedToStop = async () =>
      /^ShdPnd:\s+[0-9a-f]{15}[2367abef]$/m.test(await readFile(`/proc/${server}/status`, 'utf8'));
    await until(isAskedToStop);
    process.kill(server, 'SIGKILL');
    await cleared;
    // Its memory is freed a moment before it counts as a zombie.
    await until(async () => !isAlive(server));
    expect(() => process.kill(server, 0), 'the process id is still taken').not.toThrow();
    expect(await postmasterPid(dataDir)).toBe(process.pid);

    await parent.end('SIGKILL');
    expect(await query(await start({ dataDir }), 'select * from kept')).toEqual([{ text: 'kept' }]);
  },
);

test('a stale pid file does not block the start, and another program with that process id is left alone', async () => {
  const dataDir = await usedDataDir();
  const first = await start({ dataDir });
  const file = path.join(dataDir, 'postgres/postmaster.pid');
  const whenAlive = await readFile(file, 'utf8');
  await first.stop();
  // Runs as the server's user: in this case PostgreSQL itself would trust the file.
  const { uid, gid } = await stat(path.join(dataDir, 'postgres'));
  const bystander = spawn('sleep', ['60'], { uid, gid, stdio: 'ignore' });
  await once(bystander, 'spawn');
  onTestFinished(() => void bystander.kill('SIGKILL'));
  await writeFile(file, whenAlive.replace(/^\d+/, String(bystander.pid)));

  const second = await start({ dataDir });
  expect(second.lines).toEqual([expect.stringContaining(`process ${bystander.pid} is another program`)]);
  expect(isAlive(bystander.pid!)).toBe(true);
  expect(await query(second, 'select * from kept')).toEqual([{ text: 'kept' }]);
  await second.stop();

  for (const content of [whenAlive, '', 'garbage\n']) {
    await writeFile(file, content);
    const again = await start({ dataDir });
    expect(await query(again, 'select * from kept')).toEqual([{ text: 'kept' }]);
    await again.stop();
  }
});

test('a server that Posthorn did not start is not stopped', async () => {
  const dataDir = await usedDataDir();
  const cluster = path.join(dataDir, 'postgres');
  const { uid, gid } = await stat(cluster);
  const runAs = process.getuid?.() === 0 ? { uid, gid } : undefined;
  const { postgres } = await findBinaries(runAs, '/nonexistent', () => {});
  const byHand = spawn(
    postgres,
    ['-D', cluster, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${cluster}`],
    {
      cwd: '/',
      stdio: 'ignore',
      ...runAs,
    },
  );
  const ended = once(byHand, 'exit');
  onTestFinished(async () => {
    byHand.kill('SIGINT');
    await ended;
  });
  const pidFile = path.join(cluster, 'postmaster.pid');
  await until(async () => /^ready/m.test(await readFile(pidFile, 'utf8').catch(() => '')));

  await expect(start({ dataDir })).rejects.toMatchObject({
    code: 'held',
    message: expect.stringContaining(`that Posthorn did not start (process ${byHand.pid})`),
  });
  expect(isAlive(byHand.pid!)).toBe(true);
});

test('a first start that was killed during initdb is repeated', async () => {
  const dataDir = await newDataDir();
  const killed = forkPosthorn({ dataDir });
  const ended = once(killed, 'exit');
  await until(async () => {
    const names = await readdir(dataDir).catch(() => []);
    const unfinished = names.find((name) => name.startsWith('postgres.new-'));
    return (
      !!unfinished && (await readdir(path.join(dataDir, unfinished, 'cluster')).catch(() => [])).length > 0
    );
  });
  killed.kill('SIGKILL');
  await ended;
  expect(await readdir(dataDir)).not.toContain('postgres');
  const server = await start({ dataDir });
  expect(await query(server, "select 'kept' as text")).toEqual([{ text: 'kept' }]);
  expect((await readdir(dataDir)).filter((name) => name.includes('new'))).toEqual([]);
});

test('a first start that was killed just before its last step is repeated', async () => {
  const dataDir = await newDataDir();
  await mkdir(path.join(dataDir, 'postgres.new-0123/cluster'), { recursive: true });
  await writeFile(path.join(dataDir, 'postgres.new-0123/cluster/PG_VERSION'), '18\n');
  await writeFile(path.join(dataDir, 'postgres.password'), 'of-no-cluster\n');
  const server = await start({ dataDir });
  expect(await query(server, "select 'kept' as text")).toEqual([{ text: 'kept' }]);
  expect((await readdir(dataDir)).filter((name) => name.includes('new'))).toEqual([]);
});
