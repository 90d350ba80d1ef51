/**
 * Starts the archive process when there is something to do, one at a time. It is the CLI's `posthorn archive run`. It ends by itself,
 * and also if this process ends. Killing it is always safe.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Config, retentionOf } from './config/index.ts';
import type { Service } from './domain/lifecycle.ts';
import type { ArchiveRequests } from './ports/archive-store.ts';
import type { Log } from './telemetry/log.ts';

export interface ArchiveRunsOptions {
  readonly config: Config;
  readonly requests: Pick<ArchiveRequests, 'hasWork' | 'requireArchive'>;
  readonly log: Log;
  readonly metrics: {
    onArchived(archived: { readonly rows: number; readonly bytes: number }): void;
    onArchiveRun(result: 'done' | 'failed'): void;
  } | null;
  readonly program?: string | undefined;
  readonly onProblem: (what: string, error: unknown) => void;
}

/** True for variables that the child must not inherit: Posthorn's settings, and those that make it a child of the supervisor. */
const isNotInherited = (name: string): boolean =>
  name.startsWith('POSTHORN_') || ['PORT', 'HOST', 'NODE_UNIQUE_ID', 'NODE_CHANNEL_FD'].includes(name);
const STOP_WITHIN_MS = 5_000;
/** Only the archive knows whether the database was restored from a backup. So a run looks there at least this often. */
const RUN_AT_LEAST_EVERY_MS = 3_600_000;
const OWN_PROGRAM = new URL('../bin/posthorn.js', import.meta.url);

export class ArchiveRuns implements Service {
  readonly #options: ArchiveRunsOptions;
  #child: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #isStopped = false;
  #startedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ArchiveRunsOptions) {
    this.#options = options;
  }

  /** Records that partitions must be archived, so that servers without an archive do not drop them first. */
  async start(): Promise<void> {
    await this.#options.requests.requireArchive();
  }

  /** Resolves when the process was started, if it is needed and does not run yet. */
  async runIfNeeded(): Promise<void> {
    if (this.#isStopped || this.#child !== null) return;
    const isDue = performance.now() - this.#startedAt > RUN_AT_LEAST_EVERY_MS;
    if (!isDue && !(await this.#options.requests.hasWork())) return;
    // Another call may have been quicker.
    if (!this.#isStopped && this.#child === null) this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const child = this.#child;
    if (child === null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    await this.#ended;
    clearTimeout(timer);
  }

  #run(): void {
    const { log, metrics, onProblem, program } = this.#options;
    const child = fork(program ?? fileURLToPath(OWN_PROGRAM), ['archive', 'run'], {
      env: this.#environment(),
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    this.#child = child;
    this.#startedAt = performance.now();
    log.info({ child: child.pid }, 'started the archive process');
    child.on('message', (message: unknown) => {
      const { rows, bytes } = message as { readonly rows?: unknown; readonly bytes?: unknown };
      if (typeof rows === 'number' && typeof bytes === 'number') metrics?.onArchived({ rows, bytes });
    });
    child.on('error', (error) => onProblem('run the archive process', error));
    this.#ended = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        this.#child = null;
        resolve();
        if (code === 0) metrics?.onArchiveRun('done');
        else if (!this.#isStopped) {
          metrics?.onArchiveRun('failed');
          log.warn(
            { child: child.pid, code, signal },
            'the archive process failed; partitions that are not archived stay in the database',
          );
        }
      });
    });
  }

  #environment(): NodeJS.ProcessEnv {
    const { config } = this.#options;
    const days = retentionOf(config);
    return {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !isNotInherited(name))),
      // Rows live for a moment only: a small young generation keeps the process at half of the memory, at the same speed.
      NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --max-semi-space-size=4`.trim(),
      DATABASE_URL: config.directDatabaseUrl ?? config.databaseUrl ?? '',
      POSTHORN_ARCHIVE_URL: config.archiveUrl ?? '',
      POSTHORN_ARCHIVE_PATH_STYLE: config.archivePathStyle === null ? '' : String(config.archivePathStyle),
      POSTHORN_ARCHIVE_MAX_BUSY: String(config.archiveMaxBusy),
      POSTHORN_RETENTION_EVENTS: String(days.events),
      POSTHORN_RETENTION_DELIVERIES: String(days.deliveries),
      POSTHORN_RETENTION_ATTEMPTS: String(days.attempts),
      POSTHORN_RESTORE_DAYS: String(config.restoreDays),
      POSTHORN_TASK_TAKEOVER_MS: String(config.taskTakeoverMs),
      POSTHORN_LOG_LEVEL: config.logLevel,
      POSTHORN_LOG_FORMAT: config.logFormat,
    };
  }
}
