import { setFlagsFromString } from 'node:v8';
import {
  type ConfigWithKeys,
  ensureKeys,
  loadConfig,
  type Mode,
  maskedChanges,
  maskedConfig,
} from '../config/index.ts';
import { createLog, isPretty, type Log } from '../telemetry/log.ts';
import type { Arguments } from './arguments.ts';
import { type Explanation, explainError } from './explain-error.ts';
import { ignoreClosedStdout, printError } from './print.ts';
import { type Running, runUntilStopped, type StopRequests } from './run-until-stopped.ts';

export interface ServerContext {
  readonly config: ConfigWithKeys;
  readonly log: Log;
  readonly running: Running[];
  /** Aborted when a stop is requested, possibly before the start has finished. */
  readonly stopping: AbortSignal;
}

interface ServerCommand {
  readonly mode: Mode;
  readonly args: Arguments;
  readonly stopRequests: StopRequests;
  /** True in a child: its supervisor logs the warnings and the configuration. */
  readonly quiet?: boolean;
  /** A child uses other exit codes, which its supervisor understands. */
  readonly exitCodeOf?: (explanation: Explanation) => number;
  start(context: ServerContext): Promise<void>;
}

/**
 * V8 lets the heap grow to four times the live objects before a full collection. Most of the garbage is finished
 * deliveries. This lowers the limit to twice: 310 MB instead of 390 MB for a process with 7,000 events per second, at the same
 * speed.
 */
function keepHeapSmall(): void {
  setFlagsFromString('--heap-growing-percent=100');
}

/** The parts stop within `drainMs` themselves; after this much more, the process ends without them. */
const GRACE_MS = 3000;

/**
 * Runs a server with what all server commands share: configuration, log, keys, signals, errors. Returns the exit code.
 */
export async function runServer({
  mode,
  args,
  stopRequests,
  quiet = false,
  exitCodeOf = ({ exitCode }) => exitCode,
  start,
}: ServerCommand): Promise<number> {
  ignoreClosedStdout();
  keepHeapSmall();
  const warnings: string[] = [];
  const loaded = loadConfig({
    mode,
    env: process.env,
    flags: args.flags,
    onWarning: (message) => warnings.push(message),
  });
  const log = createLog(loaded);
  endOnUncaught(log);
  if (!quiet) for (const message of warnings) log.warn(message);
  try {
    return await runUntilStopped({
      log,
      deadlineMs: loaded.lameDuckMs + loaded.drainMs + GRACE_MS,
      stopRequests,
      start: async (running, stopping) => {
        const config = await ensureKeys(loaded, { notice: (message) => log.info(message) });
        if (!quiet) logConfig(config, log);
        await start({ config, log, running, stopping });
      },
    });
  } catch (error) {
    const explanation = explainError(error, loaded);
    if (explanation === null) throw error;
    printError(explanation.message);
    return exitCodeOf(explanation);
  }
}

/** Logs the whole configuration as JSON, but on a terminal only what differs from the defaults. */
function logConfig(config: ConfigWithKeys, log: Log): void {
  if (isPretty(config.logFormat))
    log.info({ config: maskedChanges(config) }, 'configuration (differences from the defaults)');
  else log.info({ config: maskedConfig(config) }, 'configuration');
}

/** After an unexpected error the state is unknown. A crash is safe for the engine, so the process ends. */
function endOnUncaught(log: Log): void {
  // Unhandled rejections arrive here too, with their origin.
  process.on('uncaughtException', (error, origin) => {
    log.fatal({ err: error, origin }, 'unexpected error, ending');
    process.exit(1);
  });
}
