/** A real Redis or Valkey for tests, without files. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { openDirectory } from '../../scripts/open-directory.ts';
import { openRedisSession } from '../../src/redis/index.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

const PROGRAM = ['redis-server', 'valkey-server'].find((name) => spawnSync(name, ['--version']).status === 0);

/** Null: it is installed. */
export const whyNoRedis: string | null =
  PROGRAM === undefined
    ? 'neither redis-server nor valkey-server is installed: scripts/install-redis.sh'
    : null;

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Runs a command on a connection of its own. */
  run(...args: (string | Buffer)[]): Promise<unknown>;
  /** Ends the server at once, as a crash would. */
  crash(): Promise<void>;
  /** Starts it again on the same port, empty. */
  restart(): Promise<void>;
  /** The server takes connections and answers nothing. */
  hang(): void;
  resume(): void;
  stop(): Promise<void>;
}

export async function startRedis({ password = null }: { password?: string | null } = {}): Promise<TestRedis> {
  const directory = await openDirectory('posthorn-redis-');
  const port = await freePort();
  const url = `redis://${password === null ? '' : `:${password}@`}127.0.0.1:${port}`;
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''];
  if (password !== null) args.push('--requirepass', password);
  let child: ChildProcess | null = null;
  const endOnExit = () => child?.kill('SIGKILL');
  process.once('exit', endOnExit);

  const run = async (...command: (string | Buffer)[]): Promise<unknown> => {
    const session = await openRedisSession({ url, connectTimeoutMs: 5_000, onLost: () => {} });
    try {
      return await session.run(command);
    } finally {
      session.destroy();
    }
  };
  const start = async (): Promise<void> => {
    const started = spawn(PROGRAM!, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [started.stdout, started.stderr])
      stream.on('data', (chunk) => {
        output += chunk;
      });
    child = started;
    await eventually(
      'Redis answers',
      async () => {
        if (started.exitCode !== null) throw new Error(`Redis ended:\n${output}`);
        return run('PING').then(
          () => true,
          () => false,
        );
      },
      { saw: () => output },
    );
  };
  const crash = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = once(ending, 'close');
    ending.kill('SIGKILL');
    await ended;
  };
  await start();
  return {
    url,
    port,
    get pid() {
      return child?.pid ?? 0;
    },
    run,
    crash,
    restart: start,
    hang: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    async stop() {
      await crash();
      process.off('exit', endOnExit);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
