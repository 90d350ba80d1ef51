/**
 * The life of a server process:
 *
 *   starting ──▶ running ── stop requested ──▶ stopping ── all stopped ──▶ exit 0
 *    │  │                                         ├── deadline passed ──▶ exit 1
 *    │  └── failed ──▶ what had started is stopped└── forced ──▶ exit 128 + number of the signal, at once
 *    └── stop requested, start not finished within a second ──▶ abandoned; what had started is stopped
 *
 * The parts stop in reverse order of their start, so the embedded database stops when nothing uses it any more. An
 * abrupt end is always safe: the engine survives `kill -9`, and a graceful stop only avoids duplicates.
 */
import type { Log } from '../telemetry/log.ts';

export interface Running {
  readonly name: string;
  stop(): Promise<void>;
  /** Ends it at once, after a second signal or at the deadline. */
  kill?(): void;
}

/**
 * Calls `stop` when the process should end and `force` when it should end at once. Returns a function that removes its
 * listeners.
 */
export type StopRequests = (requests: {
  stop(reason: string): void;
  force(exitCode: number): void;
}) => () => void;

export interface LifeOptions {
  readonly log: Log;
  /** Time for a graceful stop. The parts have shorter deadlines of their own, so this is the last resort. */
  readonly deadlineMs: number;
  readonly stopRequests: StopRequests;
  /** Adds each part that it starts to `running`, and returns early if `stopping` is aborted. */
  start(running: Running[], stopping: AbortSignal): Promise<void>;
}

/**
 * How long a start may continue after a stop was requested. It may wait for something that never comes (the database,
 * or the supervisor's answer to `listen` after the supervisor has ended), and it has accepted no events yet.
 */
const START_GRACE_MS = 1000;

export async function runUntilStopped({
  log,
  deadlineMs,
  stopRequests,
  start,
}: LifeOptions): Promise<number> {
  const running: Running[] = [];
  const stopping = new AbortController();
  const removeListeners = stopRequests({
    stop: (reason) => stopping.abort(reason),
    force: (exitCode) => {
      log.warn('second stop signal: ending at once');
      for (const each of running) each.kill?.();
      process.exit(exitCode);
    },
  });
  try {
    await waitForStart(start(running, stopping.signal), stopping.signal, log);
    await waitForAbort(stopping.signal);
    log.info({ reason: stopping.signal.reason }, 'stopping');
  } catch (error) {
    await stopAll(running, deadlineMs, log);
    throw error;
  }
  const startedAt = performance.now();
  const inTime = await stopAll(running, deadlineMs, log);
  if (inTime) log.info({ durationMs: Math.round(performance.now() - startedAt) }, 'stopped');
  removeListeners();
  return inTime ? 0 : 1;
}

/** Resolves when the start has finished or, after a stop was requested, has failed or taken too long. */
async function waitForStart(starting: Promise<void>, signal: AbortSignal, log: Log): Promise<void> {
  const abandoned = Promise.withResolvers<'abandoned'>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(() => abandoned.resolve('abandoned'), START_GRACE_MS);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    const how = await Promise.race([starting, abandoned.promise]);
    if (how === 'abandoned') log.warn('stop requested while starting: the start was abandoned');
  } catch (error) {
    if (!signal.aborted) throw error;
    log.warn({ err: error }, 'stop requested while starting: the start failed');
  } finally {
    signal.removeEventListener('abort', onAbort);
    clearTimeout(timer);
    // An abandoned start may still fail; nobody waits for it.
    starting.catch(() => {});
  }
}

/** Waits for the abort. The timer keeps the process alive if all its other handles are unreferenced. */
async function waitForAbort(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const keepAlive = setInterval(() => {}, 2 ** 30);
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  clearInterval(keepAlive);
}

/** Returns true if every part stopped before the deadline. The others are stopped even if one fails. */
async function stopAll(running: readonly Running[], deadlineMs: number, log: Log): Promise<boolean> {
  const deadline = performance.now() + deadlineMs;
  let inTime = true;
  for (const each of running.toReversed()) {
    try {
      if (await finishedBy(deadline, each.stop())) continue;
      log.error({ part: each.name, deadlineMs }, 'did not stop in time');
    } catch (error) {
      log.error({ part: each.name, err: error }, 'failed to stop');
    }
    inTime = false;
    each.kill?.();
  }
  return inTime;
}

async function finishedBy(deadline: number, work: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => {
    // Each part gets at least a second: the database stops after parts that may have used up the time.
    timer = setTimeout(() => resolve(false), Math.max(1000, deadline - performance.now()));
  });
  try {
    return await Promise.race([work.then(() => true as const), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
