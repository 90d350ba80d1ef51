/** Child processes of a test file. All are registered here, so that none outlives it unnoticed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { inject } from 'vitest';

export interface TestProcess {
  readonly pid: number;
  /** Everything it has printed so far to both streams. */
  output(): string;
  stdout(): string;
  readonly running: boolean;
  /** Exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Sends a signal, and resolves when the process has ended. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
  /** Sends a signal without waiting for the end. */
  signal(signal: NodeJS.Signals): void;
}

const alive = new Map<ChildProcess, string>();
process.once('exit', () => {
  for (const child of alive.keys()) child.kill('SIGKILL');
});

export function startProcess(
  args: readonly string[],
  options: { env: Readonly<Record<string, string>>; cwd?: string },
): TestProcess {
  // Pass nothing but PATH of the test's own environment: a DATABASE_URL there must not reach the program.
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: inject('compileCache'), ...options.env },
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  alive.set(child, `${child.pid}: ${args.join(' ')}`);
  let stdout = '';
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const ended = once(child, 'close').then(([code, signal]) => {
    alive.delete(child);
    return (signal ?? code) as number | NodeJS.Signals;
  });
  return {
    pid: child.pid!,
    output: () => output,
    stdout: () => stdout,
    get running() {
      return child.exitCode === null && child.signalCode === null;
    },
    ended,
    kill(signal) {
      child.kill(signal);
      return ended;
    },
    signal: (signal) => void child.kill(signal),
  };
}

/** The process ids of a process's children (Linux). */
export async function childrenOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return children.trim().split(/\s+/).filter(Boolean).map(Number);
}

/** Kills the processes that a test file has left running, and returns their descriptions. */
export async function endLeftoverProcesses(): Promise<string[]> {
  const left = [...alive];
  for (const [child] of left) {
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  }
  return left.map(([, description]) => description);
}
