import type { Setting } from './kinds.ts';
import { settings } from './settings.ts';

export type SettingKey = keyof typeof settings;

export interface NamedSetting {
  readonly key: SettingKey;
  readonly env: string;
  readonly flag: string;
  readonly setting: Setting<unknown>;
}

export const ENV_PREFIX = 'POSTHORN_';

const words = (key: string): string => key.replace(/[A-Z]/g, (capital) => `_${capital}`);

/** Adds the names that are derived from the key. */
export function named(key: string, setting: Setting<unknown>): NamedSetting {
  return {
    key: key as SettingKey,
    env: setting.env ?? ENV_PREFIX + words(key).toUpperCase(),
    flag: setting.flag ?? words(key).toLowerCase().replaceAll('_', '-'),
    setting,
  };
}

export const namedSettings: readonly NamedSetting[] = Object.entries(settings).map(([key, setting]) =>
  // The table is heterogeneous; each entry reads and shows values of its own type only.
  named(key, setting as unknown as Setting<unknown>),
);
