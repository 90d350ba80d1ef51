import type { Config } from './load.ts';
import { MASK, maskUrl } from './mask.ts';
import { type NamedSetting, namedSettings } from './names.ts';

/** Every setting with its value, fit for a log: secrets are masked, and so is the password inside an address. */
export function describeConfig(config: Config): string[] {
  const width = Math.max(...namedSettings.map((entry) => entry.env.length));
  return namedSettings.map((entry) => `${entry.env.padEnd(width)}  ${showValue(entry, config[entry.key])}`);
}

/** The same as one object, for a structured log. */
export function maskedConfig(config: Config): Record<string, string> {
  return Object.fromEntries(namedSettings.map((entry) => [entry.key, showValue(entry, config[entry.key])]));
}

function showValue({ setting }: NamedSetting, value: unknown): string {
  const isSet = value !== null && !(Array.isArray(value) && value.length === 0);
  if (isSet && setting.secrecy === 'whole') return MASK;
  if (isSet && setting.secrecy === 'password') return maskUrl(String(value));
  return setting.show(value);
}
