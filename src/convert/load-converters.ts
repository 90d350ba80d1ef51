import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ConverterPool, type ConverterPoolOptions } from './converter-pool.ts';
import { ConverterProcess } from './converter-process.ts';
import { ConverterSet } from './converter-set.ts';

export interface RunningConverters {
  readonly set: ConverterSet;
  readonly pool: ConverterPool;
}

/** Its message says what to do. */
export class ConfigFileError extends Error {
  override readonly name = 'ConfigFileError';
}

const EXTENSIONS = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs']);

/** Loads the configuration and starts the first process. Throws a `ConfigFileError` that names what is wrong with it. */
export async function loadConverters(
  file: string,
  options: ConverterPoolOptions,
): Promise<RunningConverters> {
  const absolute = path.resolve(file);
  const url = pathToFileURL(absolute).href;
  const refuse = (why: string): ConfigFileError => new ConfigFileError(`${absolute} cannot be used: ${why}.`);
  if (!EXTENSIONS.has(path.extname(absolute))) throw refuse('its name must end in .ts, .mts, .js or .mjs');
  if (!existsSync(absolute)) throw refuse('there is no such file');
  try {
    const { process, loaded } = await ConverterProcess.open({ ...options, configUrl: url, modules: [] });
    try {
      const set = new ConverterSet(url, loaded);
      return { set, pool: new ConverterPool(options, set, process) };
    } catch (error) {
      await process.close();
      throw error;
    }
  } catch (error) {
    throw refuse(error instanceof Error ? error.message.replace(/\.$/, '') : String(error));
  }
}
