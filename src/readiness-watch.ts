/**
 * Checks the readiness every two seconds, and logs when it changes: nobody may be asking `/readyz`. Also tells the other
 * processes, through the database, if this worker owns shards but cannot read deliveries or record results.
 */
import type { Clock } from './domain/clock.ts';
import type { Uuid } from './domain/ids.ts';
import type { Log } from './telemetry/log.ts';
import { Recurring } from './upkeep/index.ts';

export interface ReadinessWatchOptions {
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn' | 'info'>;
  /** Returns what is missing; null if the process is ready. */
  readonly findMissing: () => Promise<string | null>;
  /** True once the process is stopping: it is not ready, and this is not logged. */
  readonly isStopping: () => boolean;
  /** Null in an API process. */
  readonly worker: {
    readonly id: () => Uuid;
    readonly stalledForMs: () => number;
    readonly report: (workerId: Uuid, isStalled: boolean) => Promise<void>;
  } | null;
  /** A worker that has had no success for longer than this is stalled. */
  readonly stalledAfterMs: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

const CHECK_MS = 2_000;

export class ReadinessWatch extends Recurring {
  readonly #options: ReadinessWatchOptions;
  /** What the previous check found. Logged only if the next check finds it too. */
  #found: string | null = null;
  #logged: string | null = null;
  #reported: { readonly workerId: Uuid; readonly isStalled: boolean } | null = null;

  constructor(options: ReadinessWatchOptions) {
    super(options.clock, CHECK_MS);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    await this.#reportStall();
    const { log, findMissing, isStopping } = this.#options;
    const missing = await findMissing();
    const isConfirmed = missing === this.#found || missing === null;
    this.#found = missing;
    if (!isConfirmed || missing === this.#logged || isStopping()) return;
    this.#logged = missing;
    if (missing === null) log.info('ready again');
    else log.warn({ detail: missing }, 'not ready');
  }

  async #reportStall(): Promise<void> {
    const { worker, stalledAfterMs, onProblem } = this.#options;
    if (worker === null) return;
    const workerId = worker.id();
    const isStalled = worker.stalledForMs() > stalledAfterMs;
    const before = this.#reported?.workerId === workerId && this.#reported.isStalled;
    if (isStalled === before) return;
    try {
      await worker.report(workerId, isStalled);
      this.#reported = { workerId, isStalled };
    } catch (error) {
      onProblem('report that this worker is stalled', error);
    }
  }
}
