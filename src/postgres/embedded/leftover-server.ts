import { readFile, readlink, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgresError, errorCode } from './errors.ts';
import type { Home } from './home.ts';
import { runCommand } from './run-command.ts';
import { CLUSTER_NAME } from './server-settings.ts';

/** Fast shutdown first; then immediate, which leaves recovery to the next start. */
const SHUTDOWN: [NodeJS.Signals, number][] = [
  ['SIGINT', 30_000],
  ['SIGQUIT', 10_000],
];

/**
 * Stops the PostgreSQL that a killed Posthorn left running. The caller holds the Posthorn lock, so no other process
 * uses that server. (Adopting it would save about 100 ms, but it would have old settings and would not be our child.)
 * Signals a process only if it is the postmaster of this directory and Posthorn started it. Throws if another program
 * started it.
 */
export async function clearLeftoverServer(home: Home, log: (line: string) => void): Promise<void> {
  const file = path.join(home.cluster, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const pid = Number(text.split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 1) {
    await rm(file, { force: true }); // partly written; PostgreSQL would refuse to start
    return;
  }
  let found = await identifyProcess(pid, home.cluster);
  if (found === 'foreign postmaster') {
    throw new EmbeddedPostgresError(
      'held',
      `The database in ${home.cluster} is in use by a PostgreSQL server that Posthorn did not start (process ${pid}).`,
      `Stop it first (kill -INT ${pid}), or name another data directory.`,
    );
  }
  if (found === 'our postmaster') {
    const began = Date.now();
    await shutDown(pid, home);
    log(
      `Stopped the PostgreSQL (process ${pid}) that a killed Posthorn had left running (${Date.now() - began} ms)`,
    );
    found = await identifyProcess(pid, home.cluster);
  }
  if (found === 'something else') log(`Ignored a stale postmaster.pid: process ${pid} is another program`);
  if (found !== 'nothing') await markStale(file, pid);
}

/**
 * Makes the next server start despite a `postmaster.pid` of a server that died. PostgreSQL refuses to start while a process
 * with the id in this file exists, even if that process is another program or a zombie. Deleting the file would be
 * dangerous: it holds the shared memory key, by which PostgreSQL notices that backends of the old server still run. So
 * this writes the id of this process into the file. PostgreSQL ignores the id of its own parent, and still checks the key.
 */
async function markStale(file: string, pid: number): Promise<void> {
  const [first, ...rest] = (await readFile(file, 'utf8').catch(() => '')).split('\n');
  if (first === String(pid)) await writeFile(file, [process.pid, ...rest].join('\n'));
}

async function shutDown(pid: number, home: Home): Promise<void> {
  for (const [signal, timeoutMs] of SHUTDOWN) {
    const deadline = Date.now() + timeoutMs;
    if ((await identifyProcess(pid, home.cluster)) !== 'our postmaster') return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (errorCode(error) === 'ESRCH') return; // it ended after the check
      throw error;
    }
    while (Date.now() < deadline) {
      if ((await identifyProcess(pid, home.cluster)) !== 'our postmaster') return;
      await delay(10);
    }
  }
  throw new EmbeddedPostgresError(
    'held',
    `A PostgreSQL left by a killed Posthorn (process ${pid}) uses ${home.cluster} and does not stop.`,
    `Look at ${home.log}. If it does not help, kill -9 ${pid} and all its children: this loses no committed data.`,
  );
}

type Found = 'nothing' | 'our postmaster' | 'foreign postmaster' | 'something else' | 'zombie';

async function identifyProcess(pid: number, cluster: string): Promise<Found> {
  const info = process.platform === 'linux' ? await readProc(pid) : await readPs(pid);
  if (!info) return 'nothing';
  // A process that has ended has no command line, and keeps its id until its parent reaps it.
  if (info.command === '') return 'zombie';
  // Backends call themselves "postgres: …"; the postmaster keeps its command line, and works in its data directory.
  const isPostmaster = /^(?:.*\/)?postgres(?: |$)/.test(info.command);
  const isHere = info.directory === cluster || `${info.command} `.includes(` -D ${cluster} `);
  if (!isPostmaster || !isHere) return 'something else';
  return info.command.includes(`cluster_name=${CLUSTER_NAME}`) ? 'our postmaster' : 'foreign postmaster';
}

interface ProcessInfo {
  command: string;
  directory?: string;
}

async function readProc(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
    const directory = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
    return { command, ...(directory && { directory }) };
  } catch {
    return undefined;
  }
}

async function readPs(pid: number): Promise<ProcessInfo | undefined> {
  const { ok, output } = await runCommand('ps', ['-ww', '-o', 'command=', '-p', String(pid)]);
  return ok ? { command: output.trim() } : undefined;
}
