import { spawn } from 'node:child_process';

/** The user that PostgreSQL's programs run as. Undefined: our own user, unless we are root. */
export type RunAs = { readonly uid: number; readonly gid: number } | undefined;

export interface CommandResult {
  readonly ok: boolean;
  /** What it printed, stdout and stderr together; or why it could not be run. */
  readonly output: string;
}

/**
 * Takes only PATH from our own environment: PGDATA, PGOPTIONS, LD_LIBRARY_PATH or a translated LC_MESSAGES would change
 * what the programs do and print.
 */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

/** Runs a program to its end. Never rejects: a program that cannot be started counts as failed. */
export function runCommand(
  file: string,
  args: readonly string[],
  options: { runAs?: RunAs; input?: string } = {},
): Promise<CommandResult> {
  return new Promise((resolve) => {
    // Run in "/": the other user may be unable to enter our working directory, and initdb insists on returning to it.
    const child = spawn(file, args, { cwd: '/', env: serverEnvironment(), ...options.runAs });
    let output = '';
    const append = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', append);
    child.stderr.on('data', append);
    child.on('error', (error) => resolve({ ok: false, output: error.message }));
    child.on('close', (code) => resolve({ ok: code === 0, output }));
    // Ignore a broken pipe: the exit code tells whether the program failed.
    child.stdin.on('error', () => {});
    child.stdin.end(options.input ?? '');
  });
}
