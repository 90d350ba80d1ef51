import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Binaries } from './binaries.ts';
import type { EmbeddedPostgresError } from './errors.ts';
import { explainServerFailure } from './explain-failure.ts';
import type { Home } from './home.ts';
import { type RunAs, serverEnvironment } from './run-command.ts';
import { openServerLog, readServerLog } from './server-log.ts';
import { fixedSettings } from './server-settings.ts';
import { clearSocket } from './socket-directory.ts';

export interface Launch {
  readonly home: Home;
  readonly binaries: Binaries;
  readonly runAs: RunAs;
  readonly socketDirectory: string;
  readonly extraSettings: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
  /** Called when the process runs, but does not accept connections yet. */
  readonly onSpawned?: (() => void) | undefined;
}

export interface RunningServer {
  /** Resolves when the server has ended, with the reason: "signal SIGKILL", "exit code 1". */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** How long backends of a killed server may take to notice that it is gone. */
const SURVIVORS_MS = 15_000;
const LOG_PROGRESS_EVERY_MS = 5_000;

/** Starts postgres and returns when it accepts connections. */
export async function launchServer(launch: Launch): Promise<RunningServer> {
  const survivorsDeadline = Date.now() + SURVIVORS_MS;
  for (;;) {
    const attempt = await tryToLaunch(launch);
    if ('server' in attempt) return attempt.server;
    const survivors = /pre-existing shared memory block/.test(attempt.output);
    if (!survivors || Date.now() > survivorsDeadline) throw await attempt.explain();
    await delay(100);
  }
}

type Attempt = { server: RunningServer } | { output: string; explain(): Promise<EmbeddedPostgresError> };

async function tryToLaunch(launch: Launch): Promise<Attempt> {
  const { home, binaries, runAs, socketDirectory, extraSettings, environment } = launch;
  await clearSocket(socketDirectory);
  const logFile = await openServerLog(home);
  const settings = Object.entries({ ...fixedSettings(socketDirectory), ...extraSettings });
  const child = spawn(
    binaries.postgres,
    ['-D', home.cluster, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    {
      cwd: '/',
      env: { ...serverEnvironment(), ...environment },
      // A session of its own: Ctrl-C in the terminal reaches only Posthorn, which finishes its work and then stops the
      // server.
      detached: true,
      stdio: ['ignore', logFile.fd, logFile.fd],
      ...runAs,
    },
  );
  const ended = waitForEnd(child);
  await logFile.close();
  child.unref(); // the server alone does not keep Posthorn running
  stopOnExit(child, ended);
  launch.onSpawned?.();
  const how = await Promise.race([ended, waitUntilReady(child, launch)]);
  if (how === 'ready') return { server: { ended, stop: () => stopServer(child, ended) } };
  const output = await readServerLog(home, logFile.size);
  const explain = () => explainServerFailure(`PostgreSQL did not start (${how})`, output, home);
  return { output, explain };
}

/** Stops the server if Posthorn ends without stop(): through process.exit or an uncaught error. */
function stopOnExit(child: ChildProcess, ended: Promise<string>): void {
  const onExit = () => child.kill('SIGINT');
  process.once('exit', onExit);
  void ended.then(() => process.removeListener('exit', onExit));
}

async function waitForEnd(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    return signal ? `signal ${signal}` : `exit code ${code}`;
  } catch (error) {
    return String(error); // the program could not be started
  }
}

/**
 * The postmaster writes its state into the eighth line of its pid file, as for pg_ctl. There is no timeout: after a
 * crash the server may have gigabytes of WAL to replay, and would have to start over if it were stopped.
 */
async function waitUntilReady(child: ChildProcess, { home, log }: Launch): Promise<'ready' | 'ended'> {
  const file = path.join(home.cluster, 'postmaster.pid');
  const began = Date.now();
  let nextLogAt = began + LOG_PROGRESS_EVERY_MS;
  while (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n');
    if (Number(lines[0]) === child.pid && lines[7]?.trim() === 'ready') return 'ready';
    if (Date.now() > nextLogAt) {
      nextLogAt = Date.now() + LOG_PROGRESS_EVERY_MS;
      log(
        `PostgreSQL is still starting after ${Math.round((Date.now() - began) / 1000)} s (recovery); see ${home.log}`,
      );
    }
    await delay(10);
  }
  return 'ended';
}

/**
 * Fast shutdown first; then immediate, which leaves recovery to the next start; then SIGKILL, which cannot hit another
 * program because the server is our child.
 */
async function stopServer(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.ref();
  for (const [signal, timeoutMs] of [
    ['SIGINT', 30_000],
    ['SIGQUIT', 10_000],
    ['SIGKILL', 5_000],
  ] as const) {
    if (!child.kill(signal)) return; // it has ended
    const timer = new AbortController();
    const timeout = delay(timeoutMs, 'timeout', { signal: timer.signal }).catch(() => 'timeout');
    const how = await Promise.race([ended, timeout]);
    timer.abort();
    if (how !== 'timeout') return;
  }
}
