import { spawn } from 'node:child_process';

/** The user PostgreSQL's programs run as; `undefined` is whoever we are (only root has to become someone else). */
export type RunAs = { readonly uid: number; readonly gid: number } | undefined;

export interface CommandResult {
  readonly ok: boolean;
  /** What it printed, stdout and stderr together; or why it could not be run. */
  readonly output: string;
}

/**
 * Nothing of our own environment: PGDATA, PGOPTIONS, LD_LIBRARY_PATH or a translated LC_MESSAGES would change what the
 * programs do and say.
 */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

/** Runs a program to its end. It never rejects: a program that cannot be started is one that failed. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: { runAs?: RunAs; input?: string } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    // In "/": our own working directory may be one that the other user cannot enter, and initdb insists on returning to it.
    const child = spawn(file, args, { cwd: '/', env: serverEnvironment(), ...options.runAs });
    let output = '';
    const keep = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (code) => resolve({ ok: code === 0, output }));
    // A program that ends before it has read its input is judged by its exit code, not by our broken pipe.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
  });
}
