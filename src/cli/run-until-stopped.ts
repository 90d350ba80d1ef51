/**
 * The life of a server process:
 *
 *   starting ──▶ running ── stop requested ──▶ stopping ── all stopped ──▶ exit 0
 *    │  │                                         ├── deadline passed ──▶ exit 1
 *    │  └── failed ──▶ what had started is stopped└── forced ──▶ exit 128 + number of the signal, at once
 *    └── stop requested, start not finished within a second ──▶ abandoned; what had started is stopped
 *
 * What was started last is stopped first, so the embedded database goes down when nobody uses it any more. To end
 * abruptly is always allowed: the engine is made for `kill -9`, a graceful stop only spares the duplicates.
 */
import type { Log } from '../telemetry/log.ts';

export interface Running {
  readonly name: string;
  stop(): Promise<void>;
  /** Ends it without waiting, when the user insists or the deadline has passed. */
  kill?(): void;
}

/** Calls `stop` when the process should end, `force` when it should end now. Returns how to leave off. */
export type StopRequests = (requests: {
  stop(reason: string): void;
  force(exitCode: number): void;
}) => () => void;

export interface LifeOptions {
  readonly log: Log;
  /** Time for a graceful stop; the parts know it too and keep to it, so this is the last resort. */
  readonly deadlineMs: number;
  readonly stopRequests: StopRequests;
  /** Puts what it starts into `running` as it goes, and ends early if `stopping` is aborted. */
  start(running: Running[], stopping: AbortSignal): Promise<void>;
}

/**
 * How long a start may go on after a stop was requested. It can wait for what never comes (a database that is away, the
 * supervisor's answer to `listen` when the supervisor is gone), and it has promised nothing to anybody yet.
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
  const leaveOff = stopRequests({
    stop: (reason) => stopping.abort(reason),
    force: (exitCode) => {
      log.warn('stopping at once');
      for (const each of running) each.kill?.();
      process.exit(exitCode);
    },
  });
  try {
    await startedOrAbandoned(start(running, stopping.signal), stopping.signal, log);
    await aborted(stopping.signal);
    log.info({ reason: stopping.signal.reason }, 'stopping');
  } catch (error) {
    await stopAll(running, deadlineMs, log);
    throw error;
  }
  const startedAt = performance.now();
  const inTime = await stopAll(running, deadlineMs, log);
  if (inTime) log.info({ durationMs: Math.round(performance.now() - startedAt) }, 'stopped');
  leaveOff();
  return inTime ? 0 : 1;
}

/** Resolves when the start is done or, once a stop was requested, has taken too long or failed. */
async function startedOrAbandoned(starting: Promise<void>, signal: AbortSignal, log: Log): Promise<void> {
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

/** An abort alone would not keep the process alive if everything else in it is unreferenced. */
async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const staysAlive = setInterval(() => {}, 2 ** 30);
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  clearInterval(staysAlive);
}

/** True if everything stopped by itself before the deadline. One that fails does not keep the others running. */
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
    // Even past the deadline a part gets a moment: the database is stopped after whatever was late.
    timer = setTimeout(() => resolve(false), Math.max(1000, deadline - performance.now()));
  });
  try {
    return await Promise.race([work.then(() => true as const), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
