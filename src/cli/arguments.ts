import { parseArgs } from 'node:util';
import { hint, namedSettings } from '../config/index.ts';
import { UsageError } from './usage-error.ts';

export interface Arguments {
  readonly positionals: readonly string[];
  /** By flag name, as `loadConfig` takes them. */
  readonly flags: Readonly<Record<string, string>>;
  /** Options of single commands, by name. */
  readonly options: Readonly<Record<string, string>>;
  readonly wantsHelp: boolean;
  readonly wantsVersion: boolean;
  /** Show what would be done instead of doing it. */
  readonly wantsPrint: boolean;
  readonly wantsJson: boolean;
}

const settingOptions = Object.fromEntries(
  namedSettings.map(({ flag, setting }) => [
    flag,
    { type: setting.isSwitch ? ('boolean' as const) : ('string' as const) },
  ]),
);
/** Options of single commands, which are not settings. A command lists those that it takes. */
const COMMAND_OPTIONS = [
  ...['scope', 'tenant', 'description', 'scopes', 'expires-at', 'allowed-ips'],
  ...['day', 'event', 'kind', 'topic', 'type'],
  ...['events-per-day', 'peak-factor', 'fan-out', 'payload', 'p50-receiver', 'failures', 'endpoints'],
  ...['keep-days', 'cores-per-node'],
];
const options = {
  ...settingOptions,
  ...Object.fromEntries(COMMAND_OPTIONS.map((name) => [name, { type: 'string' as const }])),
  help: { type: 'boolean' as const, short: 'h' },
  version: { type: 'boolean' as const, short: 'v' },
  print: { type: 'boolean' as const },
  json: { type: 'boolean' as const },
};

/** Flags that are not settings. */
const PLAIN = new Set(['help', 'version', 'print', 'json']);

const optionNamed = (name: string): { readonly type: 'boolean' | 'string' } | undefined =>
  Object.hasOwn(options, name) ? options[name as keyof typeof options] : undefined;

const isSwitch = (name: string): boolean => !PLAIN.has(name) && optionNamed(name)?.type === 'boolean';

/** Every setting is a flag; a switch also has the form `--no-…`. The last value of a repeated flag wins. */
export function parseArguments(argv: readonly string[]): Arguments {
  // Not `strict`: its messages cannot suggest the flag that the user meant. The tokens are checked here instead.
  const { tokens } = parseArgs({
    args: [...argv],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const positionals: string[] = [];
  const flags: Record<string, string> = {};
  const ofCommand: Record<string, string> = {};
  const plain = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const switchedOff = token.name.replace(/^no-/, '');
    if (switchedOff !== token.name && isSwitch(switchedOff)) {
      if (token.value !== undefined) throw new UsageError(`${token.rawName} takes no value.`);
      flags[switchedOff] = 'false';
      continue;
    }
    const known = optionNamed(token.name);
    if (known === undefined) throw unknownFlag(token.rawName, token.name);
    if (PLAIN.has(token.name)) plain.add(token.name);
    else if (token.value !== undefined && COMMAND_OPTIONS.includes(token.name))
      ofCommand[token.name] = token.value;
    else if (token.value !== undefined) flags[token.name] = token.value;
    else if (known.type === 'boolean') flags[token.name] = 'true';
    else throw new UsageError(`${token.rawName} needs a value: ${token.rawName} <value>`);
  }
  return {
    positionals,
    flags,
    options: ofCommand,
    wantsHelp: plain.has('help'),
    wantsVersion: plain.has('version'),
    wantsPrint: plain.has('print'),
    wantsJson: plain.has('json'),
  };
}

function unknownFlag(rawName: string, name: string): UsageError {
  const proposal = hint(name, Object.keys(options), (known) => `--${known}`);
  return new UsageError(`There is no flag ${rawName}.${proposal} \`posthorn help settings\` lists them all.`);
}
