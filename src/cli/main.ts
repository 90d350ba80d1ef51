#!/usr/bin/env node
import { hint } from '../config/index.ts';
import { parseArguments } from './arguments.ts';
import { commands } from './commands/index.ts';
import { explainError } from './explain-error.ts';
import { commandHelp, overview, settingsHelp } from './help.ts';
import { print, printError } from './print.ts';
import { UsageError } from './usage-error.ts';
import { checkNodeVersion, readVersion } from './version.ts';

async function main(argv: readonly string[]): Promise<number> {
  const args = parseArguments(argv);
  const [name, ...rest] = args.positionals;
  if (args.wantsVersion) return printAndSucceed(readVersion());
  if (name === 'help') return help(rest);
  if (name === undefined) return args.wantsHelp || argv.length === 0 ? help([]) : noCommand();
  const command = findCommand(name);
  if (args.wantsHelp) return printAndSucceed(commandHelp(command));
  const hasAction = command.actions?.includes(rest[0] ?? '') === true;
  const allowed = (hasAction ? 1 : 0) + (hasAction && command.takesFile === true ? 1 : 0);
  refuseExtra(rest.slice(allowed));
  if (args.wantsJson && command.takesJson !== true)
    throw new UsageError(`posthorn ${name} does not support --json.`);
  const foreign = Object.keys(args.options).find((option) => !command.options?.includes(option));
  if (foreign !== undefined) throw new UsageError(`posthorn ${name} has no option --${foreign}.`);
  const problem = checkNodeVersion();
  if (problem !== null) throw new UsageError(problem);
  return command.run(args);
}

function help([topic, ...rest]: readonly string[]): number {
  refuseExtra(rest);
  if (topic === undefined) return printAndSucceed(overview(commands, readVersion()));
  if (topic === 'settings') return printAndSucceed(settingsHelp());
  return printAndSucceed(commandHelp(findCommand(topic)));
}

function findCommand(name: string) {
  const command = commands.find((each) => each.name === name);
  if (command !== undefined) return command;
  const names = [...commands.map((each) => each.name), 'help'];
  throw new UsageError(
    `There is no command ${name}.${hint(name, names, String)} Commands: ${names.join(', ')}.`,
  );
}

function noCommand(): never {
  throw new UsageError('No command given. `posthorn help` lists the commands.');
}

function refuseExtra(rest: readonly string[]): void {
  if (rest.length > 0)
    throw new UsageError(`Unexpected argument: ${rest.join(' ')}. \`posthorn help\` shows the usage.`);
}

function printAndSucceed(text: string): number {
  print(text);
  return 0;
}

async function run(): Promise<number> {
  try {
    return await main(process.argv.slice(2));
  } catch (error) {
    const explanation = explainError(error);
    printError(
      explanation?.message ?? (error instanceof Error ? (error.stack ?? error.message) : String(error)),
    );
    return explanation?.exitCode ?? 1;
  }
}

// Exit explicitly, so that an open handle cannot keep a stopped server alive.
void run().then((code) => process.exit(code));
