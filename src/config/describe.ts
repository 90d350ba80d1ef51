import { type Config, loadConfig } from './load.ts';
import { MASK, maskUrl } from './mask.ts';
import { type NamedSetting, namedSettings } from './names.ts';

/** Every setting with its value, fit for a log: secrets are masked, and so is the password inside an address. */
export function describeConfig(config: Config): string[] {
  const width = Math.max(...namedSettings.map((entry) => entry.env.length));
  return namedSettings.map((entry) => `${entry.env.padEnd(width)}  ${showValue(entry, config[entry.key])}`);
}

/** The same as one object, for a structured log: by the names under which an operator sets them. */
export function maskedConfig(config: Config): Record<string, string> {
  return Object.fromEntries(namedSettings.map((entry) => [entry.env, showValue(entry, config[entry.key])]));
}

/** Only what differs from the defaults of its mode. */
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
