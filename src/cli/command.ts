import type { Arguments } from './arguments.ts';

/** One file in commands/ per command. */
export interface Command {
  readonly name: string;
  /** For the overview, a few words. */
  readonly summary: string;
  readonly usage: string;
  readonly about: string;
  /** Words that may follow the name, one at a time. */
  readonly actions?: readonly string[];
  /** Has a form for machines. */
  readonly takesJson?: true;
  /** Resolves with the exit code when there is nothing left to do. */
  run(args: Arguments): Promise<number>;
}
