import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, onTestFinished } from 'vitest';
import { type EmbeddedPostgres, type EmbeddedPostgresOptions, startEmbeddedPostgres } from '../index.ts';

/**
 * Creates the directory in memory if there is space: a cluster has 1,300 files, and some disks take two seconds to
 * create them.
 */
async function makeDirectory(name: string): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined);
  const hasRoom = memory && memory.bavail * memory.bsize > 2 ** 30;
  const dir = await mkdtemp(path.join(hasRoom ? '/dev/shm' : tmpdir(), name));
  await chmod(dir, 0o755);
  return dir;
}

/** A directory that everybody can enter. It is deleted after the test. */
export async function temporaryDirectory(): Promise<string> {
  const dir = await makeDirectory('posthorn-test-');
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
  return dir;
}

export async function newDataDir(): Promise<string> {
  return path.join(await temporaryDirectory(), 'data');
}

/**
 * Returns a function that creates data directories with a database. They are copies of one template per test file,
 * which is ten times quicker.
 */
export function filledDataDirs(): () => Promise<string> {
  let template: Promise<string> | undefined;
  afterAll(async () => {
    if (template !== undefined) await rm(path.dirname(await template), { recursive: true, force: true });
  });
  return async () => {
    template ??= makeTemplate();
    const dataDir = await newDataDir();
    await promisify(execFile)('cp', ['-a', await template, dataDir]);
    return dataDir;
  };
}

async function makeTemplate(): Promise<string> {
  const dir = await makeDirectory('posthorn-test-template-');
  const server = await startEmbeddedPostgres({ dataDir: path.join(dir, 'data') });
  await query(server, `create table kept as select 'kept' as text`);
  await server.stop();
  return server.dataDir;
}

/** Starts an embedded PostgreSQL in this process and stops it after the test. */
export async function start(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres & { lines: string[] }> {
  const lines: string[] = [];
  const server = await startEmbeddedPostgres({ log: (line) => lines.push(line), ...options });
  onTestFinished(() => server.stop());
  return { ...server, lines };
}

export async function query<T = Record<string, unknown>>(
  server: { connectionString: string },
  sql: string,
): Promise<T[]> {
  const client = new pg.Client({ connectionString: server.connectionString });
  client.on('error', () => {});
  await client.connect();
  try {
    const result = await client.query(sql);
    return result.rows as T[];
  } finally {
    await client.end();
  }
}

export interface PosthornProcess {
  readonly child: ChildProcess;
  readonly log: string[];
  readonly connectionString: string;
  readonly dataDir: string;
  /** Set if it did not start. */
  readonly failed?: { code: string; message: string; hint: string; stack: string };
  end(how: 'stop' | 'exit' | 'detach' | 'SIGKILL'): Promise<number | null>;
}

/** Starts Posthorn's stand-in in another process. Neither it nor its server outlives the test. */
export async function startProcess(
  options: Pick<EmbeddedPostgresOptions, 'dataDir' | 'systemDir'>,
  user?: { uid: number; gid: number },
): Promise<PosthornProcess> {
  const child = forkPosthorn(options, user);
  const ended = once(child, 'exit');
  const [message] = await Promise.race([once(child, 'message'), ended.then(() => [{ died: true }])]);
  if (message.died) throw new Error('the process ended without a report');
  const dataDir: string = message.started?.dataDir ?? options.dataDir;
  if (message.started) {
    const serverPid = await postmasterPid(dataDir);
    onTestFinished(() => endServer(serverPid));
  }
  return {
    child,
    log: message.log,
    connectionString: message.started?.connectionString ?? '',
    dataDir,
    ...(message.failed && { failed: message.failed }),
    async end(how) {
      if (how === 'SIGKILL') child.kill(how);
      else child.send(how);
      const [code] = (await ended) as [number | null];
      return code;
    },
  };
}

export function forkPosthorn(options: object, user?: { uid: number; gid: number }): ChildProcess {
  const script = fileURLToPath(new URL('./posthorn-process.ts', import.meta.url));
  const child = fork(script, [JSON.stringify(options)], { execArgv: [], cwd: '/', ...user });
  const ended = once(child, 'exit');
  onTestFinished(async () => {
    if (child.kill('SIGKILL')) await ended;
  });
  return child;
}

export async function postmasterPid(dataDir: string): Promise<number> {
  return Number((await readFile(path.join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
}

/** Zombies count as ended: the process that inherits orphans may reap them late. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return (
      process.platform !== 'linux' || !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    );
  } catch {
    return false;
  }
}

/** Polls until the condition holds. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`still false after ${timeoutMs} ms: ${condition}`);
    await delay(5);
  }
}

/** Stops the postmaster of a killed process if no later start has stopped it. */
async function endServer(pid: number): Promise<void> {
  if (!isAlive(pid)) return;
  process.kill(pid, 'SIGQUIT');
  await until(() => !isAlive(pid));
}
