import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/index.ts';
import type { Log } from '../telemetry/log.ts';
import { explainError } from './explain-error.ts';

const MIN_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5000;

export interface Waiting {
  readonly config: Pick<Config, 'waitForDatabase'>;
  readonly log: Log;
  readonly stopping: AbortSignal;
  readonly databaseUrl: string;
  /** Called after each attempt that failed. If it throws, the start fails. */
  readonly onWaiting?: () => Promise<void>;
}

/**
 * Retries `start`, with growing pauses, while it fails because the database is unreachable or busy. Returns its result,
 * or null if a stop was requested meanwhile. Throws every other error, and with `--no-wait` this one too.
 */
export async function waitForDatabase<T>(
  { config, log, stopping, databaseUrl, onWaiting }: Waiting,
  start: () => Promise<T>,
): Promise<T | null> {
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    try {
      return await start();
    } catch (error) {
      const explanation = explainError(error, { databaseUrl });
      if (!config.waitForDatabase || explanation?.isTransient !== true) throw error;
      const reason = explanation.message.split('\n')[0];
      log.warn({ reason, retryInMs: pauseMs }, 'waiting for the database');
    }
    await onWaiting?.();
    await sleep(pauseMs, undefined, { signal: stopping }).catch(() => {});
    if (stopping.aborted) return null;
  }
}
