import { readFile, readlink, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EmbeddedPostgresError, errorCode } from './errors.ts';
import type { Home } from './home.ts';
import { runCommand } from './run-command.ts';
import { CLUSTER_NAME } from './server-settings.ts';

/** First the quick, clean way; then the one that leaves recovery to the next start. */
const SHUTDOWN: [NodeJS.Signals, number][] = [
  ['SIGINT', 30_000],
  ['SIGQUIT', 10_000],
];

/**
 * A Posthorn that was killed leaves its PostgreSQL running. We hold the Posthorn lock by now, so nobody uses that server:
 * it is shut down, and ours starts from a known state. (Taking it over would be some 100 ms quicker, with settings of
 * another time and a process that is not our child.) A process is sent a signal only if it is the postmaster of this very
 * directory, started by Posthorn.
 */
export async function clearLeftoverServer(home: Home, log: (line: string) => void): Promise<void> {
  const file = path.join(home.cluster, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return;
  const pid = Number(text.split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 1) {
    await rm(file, { force: true }); // cut short while it was written; PostgreSQL would refuse to guess
    return;
  }
  let found = await whatIs(pid, home.cluster);
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
    found = await whatIs(pid, home.cluster);
  }
  if (found === 'something else')
    log(`Took no notice of a stale postmaster.pid: process ${pid} is another program by now`);
  if (found !== 'nothing') await markStale(file, pid);
}

/**
 * PostgreSQL believes the file for as long as the process id in it exists: as another program of the same user, or as a
 * zombie that its new parent has not reaped. Deleting the file would lose the shared memory key, by which PostgreSQL
 * recognizes surviving backends; with our own id, that of the parent of the server to come, the file counts as stale and
 * PostgreSQL still checks the key. A server that stopped cleanly has removed its file.
 */
async function markStale(file: string, pid: number): Promise<void> {
  const [first, ...rest] = (await readFile(file, 'utf8').catch(() => '')).split('\n');
  if (first === String(pid)) await writeFile(file, [process.pid, ...rest].join('\n'));
}

async function shutDown(pid: number, home: Home): Promise<void> {
  for (const [signal, patienceMs] of SHUTDOWN) {
    const deadline = Date.now() + patienceMs;
    if ((await whatIs(pid, home.cluster)) !== 'our postmaster') return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (errorCode(error) === 'ESRCH') return; // it ended since we looked
      throw error;
    }
    while (Date.now() < deadline) {
      if ((await whatIs(pid, home.cluster)) !== 'our postmaster') return;
      await delay(10);
    }
  }
  throw new EmbeddedPostgresError(
    'held',
    `A PostgreSQL left by a killed Posthorn (process ${pid}) uses ${home.cluster} and does not stop.`,
    `Look at ${home.log}. If nothing helps, kill -9 ${pid} and all its children: no committed data is lost by that.`,
  );
}

type Found = 'nothing' | 'our postmaster' | 'foreign postmaster' | 'something else' | 'zombie';

async function whatIs(pid: number, cluster: string): Promise<Found> {
  const look = process.platform === 'linux' ? await lookInProc(pid) : await lookWithPs(pid);
  if (!look) return 'nothing';
  // A process that has ended has no command line, and keeps its id until its parent reaps it.
  if (look.command === '') return 'zombie';
  // Backends call themselves "postgres: …"; the postmaster keeps its command line, and works in its data directory.
  const isPostmaster = /^(?:.*\/)?postgres(?: |$)/.test(look.command);
  const isHere = look.directory === cluster || `${look.command} `.includes(` -D ${cluster} `);
  if (!isPostmaster || !isHere) return 'something else';
  return look.command.includes(`cluster_name=${CLUSTER_NAME}`) ? 'our postmaster' : 'foreign postmaster';
}

interface Look {
  command: string;
  directory?: string;
}

async function lookInProc(pid: number): Promise<Look | undefined> {
  try {
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
    const directory = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
    return { command, ...(directory && { directory }) };
  } catch {
    return undefined;
  }
}

async function lookWithPs(pid: number): Promise<Look | undefined> {
  const { ok, output } = await runCommand('ps', ['-ww', '-o', 'command=', '-p', String(pid)]);
  return ok ? { command: output.trim() } : undefined;
}
