/** Runs blocks of the documentation in bash, where `posthorn` is the program under test. */
import { spawn } from 'node:child_process';
import { inject, onTestFinished } from 'vitest';
import type { RunAs } from '../../src/postgres/embedded/run-command.ts';
import { eventually } from './eventually.ts';

export interface PrintedOptions {
  readonly env: Readonly<Record<string, string>>;
  /** What differs from the page: addresses, names and paths. */
  readonly replace: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly runAs?: RunAs;
  /** True: its exit code does not matter. */
  readonly mayFail?: boolean;
}

/** Runs the block to its end, and returns what it printed. Throws if its last command fails, unless it may. */
export async function runPrinted(text: string, options: PrintedOptions): Promise<string> {
  const { ended, output } = start(text, options);
  const code = await ended;
  if (code !== 0 && options.mayFail !== true)
    throw new Error(`The commands ended with ${code}:\n${text}\n${output()}`);
  return output();
}

/** Runs the block until it prints `until`, stops it, and returns what it printed. */
export async function runPrintedUntil(until: string, text: string, options: PrintedOptions): Promise<string> {
  const { ended, output, stop } = start(text, options);
  await eventually(`it prints "${until}"`, () => output().includes(until), {
    timeoutMs: 90_000,
    saw: output,
  });
  stop();
  await ended;
  return output();
}

function start(text: string, { env, replace, cwd = '/', runAs }: PrintedOptions) {
  const script = Object.entries(replace).reduce((block, [from, to]) => block.replaceAll(from, to), text);
  const child = spawn(
    'bash',
    ['-uo', 'pipefail', '-c', `posthorn() { "${process.execPath}" "${inject('program')}" "$@"; }\n${script}`],
    {
      cwd,
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
      ...runAs,
    },
  );
  let output = '';
  let isRunning = true;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      isRunning = false;
      resolve(code);
    });
  });
  // The whole group: bash waits for the program that it runs.
  const signal = (name: NodeJS.Signals): void => {
    if (isRunning) process.kill(-child.pid!, name);
  };
  onTestFinished(() => signal('SIGKILL'));
  return { ended, output: () => output, stop: () => signal('SIGTERM') };
}
