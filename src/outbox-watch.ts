/**
 * Logs a warning if the oldest row of the outbox stays where it is: the process that drains the outbox may believe that it is well.
 * Every process watches, because the one that drains may be the one that hangs.
 */
import type { Clock } from './domain/clock.ts';
import type { OutboxStore } from './ports/outbox-store.ts';
import type { Log } from './telemetry/log.ts';
import { Recurring } from './upkeep/index.ts';

export interface OutboxWatchOptions {
  readonly outbox: Pick<OutboxStore, 'readLag'>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'warn' | 'info'>;
}

const CHECK_MS = 2_000;
/** Longer than a takeover, and longer than all retries of a row that is then rejected. */
const STALLED_AFTER_MS = 6_000;
const REPEAT_MS = 60_000;

export class OutboxWatch extends Recurring {
  readonly #options: OutboxWatchOptions;
  /** The oldest row, and since when it has been the oldest one. */
  #oldest: { readonly seq: string; readonly since: number } | null = null;
  #warnedAt: number | null = null;

  constructor(options: OutboxWatchOptions) {
    super(options.clock, CHECK_MS);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    try {
      await this.check();
    } catch {
      // The database does not answer, which the readiness and the log show.
      this.#oldest = null;
    }
  }

  async check(): Promise<void> {
    const { outbox, clock, log } = this.#options;
    const { oldestSeq, lagMs } = await outbox.readLag();
    const now = clock.monotonic();
    if (oldestSeq === null || oldestSeq !== this.#oldest?.seq) {
      this.#oldest = oldestSeq === null ? null : { seq: oldestSeq, since: now };
      if (this.#warnedAt !== null) log.info('rows of the outbox are stored again');
      this.#warnedAt = null;
      return;
    }
    if (now - this.#oldest.since < STALLED_AFTER_MS) return;
    if (this.#warnedAt !== null && now - this.#warnedAt < REPEAT_MS) return;
    this.#warnedAt = now;
    log.warn(
      { seq: oldestSeq, oldest_age_seconds: Math.round(lagMs / 1000) },
      'the oldest row of the outbox is not stored as an event',
    );
  }
}
