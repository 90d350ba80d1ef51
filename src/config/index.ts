export { describeConfig, maskedChanges, maskedConfig } from './describe.ts';
export { hint } from './did-you-mean.ts';
export { ensureKeys, newAdminKey } from './generated-keys.ts';
export type { Mode, Setting } from './kinds.ts';
export {
  type Config,
  ConfigError,
  type ConfigProblem,
  type ConfigSources,
  type ConfigWithKeys,
  defaultOf,
  loadConfig,
  withListeningPort,
} from './load.ts';
export { maskUrl } from './mask.ts';
export { type NamedSetting, named, namedSettings } from './names.ts';
export { type PackagedFolder, readPackagedFolder } from './packaged-files.ts';
export { retentionOf } from './retention.ts';
export { sections } from './settings.ts';
export { oldestNode, readVersion } from './version.ts';
