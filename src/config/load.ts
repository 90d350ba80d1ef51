import { isIPv6 } from 'node:net';
import { checks } from './checks.ts';
import { hint } from './did-you-mean.ts';
import { Invalid, type Mode, type Setting } from './kinds.ts';
import { MASK, maskUrl } from './mask.ts';
import { ENV_PREFIX, type NamedSetting, namedSettings, type SettingKey } from './names.ts';
import type { settings } from './settings.ts';

type FromTable = {
  readonly [K in SettingKey]: (typeof settings)[K] extends Setting<infer T> ? T : never;
};

/** All settings. Read once at start, never changed afterwards. */
export type Config = Omit<FromTable, 'publicUrl'> & {
  readonly mode: Mode;
  readonly publicUrl: string;
};

/** A configuration whose keys are set. */
export type ConfigWithKeys = Config & { readonly adminKey: string; readonly encryptionKey: Buffer };

export interface ConfigProblem {
  /** The variable or flag as the user wrote it. */
  readonly name: string;
  readonly message: string;
}

/** Thrown if the configuration is invalid. Lists every problem at once. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map((problem) => `  ${problem.message}`);
    super(
      `The configuration is invalid (${problems.length} problem${problems.length === 1 ? '' : 's'}):\n${lines.join('\n')}`,
    );
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export interface ConfigSources {
  readonly mode: Mode;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** By flag name without dashes. Flags take precedence over the environment. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  /** Called with likely mistakes that do not prevent the start. */
  readonly onWarning?: (message: string) => void;
}

export function loadConfig({ mode, env, flags = {}, onWarning = () => {} }: ConfigSources): Config {
  const problems: ConfigProblem[] = unknownFlags(flags);
  for (const message of unknownVariables(env)) onWarning(message);
  for (const message of deprecatedVariables(env)) onWarning(message);

  const values: Record<string, unknown> = { mode };
  const sources = new Map<SettingKey, string>();
  const invalid = new Set<SettingKey>();
  for (const entry of namedSettings) {
    const given = findGiven(entry, env, flags);
    sources.set(entry.key, given?.name ?? entry.env);
    const value = given === null ? defaultOf(entry.setting, mode) : entry.setting.read(given.text);
    if (value instanceof Invalid) {
      invalid.add(entry.key);
      problems.push({ name: given!.name, message: describeInvalid(entry, given!) });
    } else {
      values[entry.key] = value;
    }
  }
  values.publicUrl ??= defaultPublicUrl(values.host as string, values.port as number);

  const config = Object.freeze(values) as unknown as Config;
  for (const check of checks) {
    if (check.about.some((key) => invalid.has(key))) continue;
    const message = check.problem(config, (key) => sources.get(key)!);
    if (message !== null) problems.push({ name: sources.get(check.about[0]!)!, message });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** Replaces port 0 by the port that the server listens on, also in the default public URL. */
export function withListeningPort(config: Config, port: number): Config {
  const isDefaultUrl = config.publicUrl === defaultPublicUrl(config.host, config.port);
  const publicUrl = isDefaultUrl ? defaultPublicUrl(config.host, port) : config.publicUrl;
  return Object.freeze({ ...config, port, publicUrl });
}

/** The URL for a person on this machine. "Every interface" is not an address, so it becomes loopback. */
function defaultPublicUrl(host: string, port: number): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`;
  if (host === '::') return `http://[::1]:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

export function defaultOf<T>(setting: Setting<T>, mode: Mode): T {
  return typeof setting.default === 'function'
    ? (setting.default as (mode: Mode) => T)(mode)
    : setting.default;
}

interface Given {
  readonly name: string;
  readonly text: string;
}

function findGiven(
  { env: variable, flag }: NamedSetting,
  env: ConfigSources['env'],
  flags: NonNullable<ConfigSources['flags']>,
): Given | null {
  const byFlag = flags[flag];
  if (byFlag !== undefined) return { name: `--${flag}`, text: String(byFlag) };
  const byVariable = env[variable]?.trim();
  // `PORT=` in a compose file or an .env template means "unset".
  return byVariable === undefined || byVariable === '' ? null : { name: variable, text: byVariable };
}

const LONGEST_SHOWN = 100;

function describeInvalid({ setting }: NamedSetting, { name, text }: Given): string {
  const shown = text.length > LONGEST_SHOWN ? `${text.slice(0, LONGEST_SHOWN)}…` : text;
  const given = {
    open: `"${shown}"`,
    password: `"${maskUrl(text)}"`,
    whole: `${MASK} (${text.length} characters)`,
  }[setting.secrecy];
  return `${name} is ${given}. Allowed: ${setting.allowed}.`;
}

function unknownFlags(flags: NonNullable<ConfigSources['flags']>): ConfigProblem[] {
  const known = new Set(namedSettings.map((entry) => entry.flag));
  return Object.keys(flags)
    .filter((flag) => !known.has(flag))
    .map((flag) => ({
      name: `--${flag}`,
      message: `--${flag} is not a setting.${hint(flag, known, (name) => `--${name}`)}`,
    }));
}

function unknownVariables(env: ConfigSources['env']): string[] {
  const known = new Set(namedSettings.map((entry) => entry.env));
  return Object.keys(env)
    .filter((variable) => variable.startsWith(ENV_PREFIX) && !known.has(variable))
    .map(
      (variable) =>
        `${variable} is not a setting of Posthorn and has no effect.${hint(variable, known, String)}`,
    );
}

/** Settings that still work under their old name, with the name that replaces it. */
const DEPRECATED: Readonly<Record<string, string>> = {
  POSTHORN_AUDIT_RETENTION_MS: 'POSTHORN_RETENTION_AUDIT (in days)',
};

function deprecatedVariables(env: ConfigSources['env']): string[] {
  return Object.entries(DEPRECATED)
    .filter(([old]) => (env[old] ?? '').trim() !== '')
    .map(([old, replacement]) => `${old} is deprecated. Use ${replacement} instead.`);
}
