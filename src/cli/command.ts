import type { Arguments } from './arguments.ts';

/** A command of the CLI. Each has a file in commands/. */
export interface Command {
  readonly name: string;
  /** A few words for the overview. */
  readonly summary: string;
  readonly usage: string;
  readonly about: string;
  /** Words of which one may follow the name. */
  readonly actions?: readonly string[];
  /** A file name may follow the action. */
  readonly takesFile?: true;
  /** Options of this command that are not settings, without dashes. Each takes a value. */
  readonly options?: readonly string[];
  /** The command supports --json. */
  readonly takesJson?: true;
  /** Resolves with the exit code when the command has finished. */
  run(args: Arguments): Promise<number>;
}
