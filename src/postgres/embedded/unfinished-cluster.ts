import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Home, UNFINISHED_PREFIX } from './home.ts';
import { runCommand } from './run-command.ts';

/**
 * How long to wait for the initdb of a killed Posthorn. It ends at its next write to the pipe, which has no reader any
 * more. Its postgres ends at the end of its input.
 */
const MAX_WAIT_MS = 5_000;

/** Returns the directories that interrupted first starts have left. */
export async function findUnfinished(home: Home): Promise<string[]> {
  const names = (await readdir(home.dir)).filter((name) => name.startsWith(UNFINISHED_PREFIX));
  return names.map((name) => path.join(home.dir, name));
}

/**
 * Deletes an unfinished cluster. The initdb of a killed Posthorn runs on for a moment, and we wait for it: a postgres
 * that loses its files while it runs does not release its shared memory (seen: 1 MB in /dev/shm, forever). What cannot
 * be deleted now is deleted at the next start.
 */
export async function clearUnfinished(directory: string): Promise<void> {
  const deadline = Date.now() + MAX_WAIT_MS;
  while ((await isInUse(directory)) && Date.now() < deadline) await delay(20);
  await rm(directory, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

/** initdb has the directory on its command line, postgres works in it. */
async function isInUse(directory: string): Promise<boolean> {
  if (process.platform !== 'linux') {
    return (await runCommand('ps', ['-axww', '-o', 'command='])).output.includes(directory);
  }
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const uses = await Promise.all(
    pids.map(async (pid) => {
      const workingDirectory = await readlink(`/proc/${pid}/cwd`).catch(() => '');
      if (workingDirectory.startsWith(directory)) return true;
      return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes(directory);
    }),
  );
  return uses.includes(true);
}
