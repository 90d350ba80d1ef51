/** `posthorn dev` as `npm start` runs it, with an embedded PostgreSQL in its own data directory. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { temporaryDirectory } from './postgres.ts';
import { runPosthorn, SOURCE, TEST_SETTINGS, type TestPosthorn } from './posthorn.ts';

export interface DevHome {
  readonly dataDir: string;
  start(env?: Readonly<Record<string, string>>): Promise<TestPosthorn>;
  /** Process id of the PostgreSQL that runs there, or undefined. */
  postgresPid(): Promise<number | undefined>;
}

const { POSTHORN_HEARTBEAT_MS, POSTHORN_PROOF_MS, POSTHORN_DEAD_AFTER_MS, POSTHORN_SWEEP_MS } = TEST_SETTINGS;
const TIMES = { POSTHORN_HEARTBEAT_MS, POSTHORN_PROOF_MS, POSTHORN_DEAD_AFTER_MS, POSTHORN_SWEEP_MS };

/** Creates an empty directory. The directory and its processes are removed after the test. */
export async function newDevHome(): Promise<DevHome> {
  const directory = await temporaryDirectory('posthorn-dev-');
  const dataDir = path.join(directory, 'data');
  const started: TestPosthorn[] = [];
  const postgresPid = async () => {
    const file = await readFile(path.join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
    const pid = Number(file.split('\n')[0]);
    return pid > 0 && isAlive(pid) ? pid : undefined;
  };
  onTestFinished(async () => {
    for (const posthorn of started) await posthorn.kill('SIGKILL');
    // A killed Posthorn leaves its PostgreSQL running.
    const pid = await postgresPid();
    if (pid !== undefined) {
      process.kill(pid, 'SIGQUIT');
      await eventually('PostgreSQL has ended', () => !isAlive(pid));
    }
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  return {
    dataDir,
    postgresPid,
    async start(env = {}) {
      const all = { PORT: '0', POSTHORN_DATA_DIR: dataDir, ...TIMES, ...env } as Record<string, string>;
      const posthorn = await runPosthorn(['dev'], all, undefined, { cwd: directory, main: SOURCE });
      started.push(posthorn);
      return posthorn;
    },
  };
}

/** Zombies count as ended: the process that inherits orphans may reap them late. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A minimal Linux has no `ps`.
    if (process.platform === 'linux')
      return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return !execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).startsWith('Z');
  } catch {
    return false;
  }
}
