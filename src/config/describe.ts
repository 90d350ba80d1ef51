import { type Config, loadConfig } from './load.ts';
import { MASK, maskUrl } from './mask.ts';
import { type NamedSetting, namedSettings } from './names.ts';

/** One line per setting with its value. Secrets are masked, and so are passwords in URLs. */
export function describeConfig(config: Config): string[] {
  const width = Math.max(...namedSettings.map((entry) => entry.env.length));
  return namedSettings.map((entry) => `${entry.env.padEnd(width)}  ${showValue(entry, config[entry.key])}`);
}

/** The same as one object for a structured log, by environment variable. */
export function maskedConfig(config: Config): Record<string, string> {
  return Object.fromEntries(namedSettings.map((entry) => [entry.env, showValue(entry, config[entry.key])]));
}

/** The same, without the settings that have the default value of their mode. */
export function maskedChanges(config: Config): Record<string, string> {
  const all = Object.entries(maskedConfig(config));
  const defaults = maskedConfig(loadConfig({ mode: config.mode, env: {} }));
  return Object.fromEntries(all.filter(([name, value]) => value !== defaults[name]));
}

function showValue({ setting }: NamedSetting, value: unknown): string {
  const isSet = value !== null && !(Array.isArray(value) && value.length === 0);
  if (isSet && setting.secrecy === 'whole') return MASK;
  if (isSet && setting.secrecy === 'password') return maskUrl(String(value));
  return setting.show(value);
}
