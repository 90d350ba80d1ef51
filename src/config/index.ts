export { describeConfig, maskedConfig } from './describe.ts';
export { ensureKeys, newAdminKey } from './generated-keys.ts';
export type { Mode } from './kinds.ts';
export {
  type Config,
  ConfigError,
  type ConfigProblem,
  type ConfigSources,
  type ConfigWithKeys,
  loadConfig,
  withListeningPort,
} from './load.ts';
