/** Composes the convert stage: the converters of `posthorn.config.ts` in processes of their own, and the cache of versions. */
import type { AppMetrics } from './app-metrics.ts';
import type { Config } from './config/index.ts';
import { Conversions, loadConverters, type RunningConverters } from './convert/index.ts';
import type { Clock } from './domain/clock.ts';
import type { ConversionStore } from './ports/conversion-store.ts';
import type { VersionDirectory } from './ports/version-directory.ts';
import type { Log } from './telemetry/log.ts';

export interface ConversionParts {
  readonly config: Config;
  readonly conversions: ConversionStore;
  readonly versions: VersionDirectory;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: AppMetrics | null;
  readonly onProblem: (what: string, error: unknown) => void;
}

export interface ConvertStage {
  readonly converter: Conversions;
  /** Null: there is no configuration. */
  readonly running: RunningConverters | null;
}

/** Throws a `ConfigFileError` if the configuration cannot be loaded. */
export async function createConversions(parts: ConversionParts): Promise<ConvertStage> {
  const { config, clock, log, metrics, onProblem } = parts;
  const running =
    config.configFile === null
      ? null
      : await loadConverters(config.configFile, {
          clock,
          processes: config.converterThreads,
          timeoutMs: config.converterTimeoutMs,
          memoryBytes: config.converterMemoryBytes,
          maxResultBytes: config.maxEventBytes,
          onProblem,
        });
  if (running !== null)
    log.info(
      { file: config.configFile, converters: running.set.size, hash: running.set.hash },
      'loaded converters',
    );
  const converter = new Conversions({
    versions: parts.versions,
    store: parts.conversions,
    converters: running && {
      hash: running.set.hash,
      findPath: (type, from, to) => running.set.findPath(type, from, to),
      run: (request, done) => running.pool.convert(request, done),
    },
    observer: metrics?.conversions,
    now: () => clock.monotonic(),
    onProblem,
  });
  return { converter, running };
}
