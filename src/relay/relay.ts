/**
 * The relay: carries what a source has until it is told to stop, through restarts of either database. One line in the
 * log when something is lost, tries at growing distances, one line when it goes on.
 */
import type { Clock } from '../domain/clock.ts';
import type { Pool } from '../postgres/database.ts';
import { oldestWaitingSeconds, readSlot, type SourceFacts } from '../postgres/queries/outbox-table.ts';
import { type RelayMode, registerSource, reportSource } from '../postgres/queries/relay-sources.ts';
import type { Log } from '../telemetry/log.ts';
import { LogFollower } from './log-follower.ts';
import { RelayError } from './relay-error.ts';
import { type Sink, Tally } from './sink.ts';
import { OutboxTable } from './table.ts';

export interface RelayOptions {
  readonly name: string;
  readonly mode: RelayMode;
  readonly sourceUrl: string;
  readonly source: Pool;
  readonly pool: Pool;
  readonly sink: Sink;
  readonly log: Log;
  readonly clock: Clock;
  readonly facts: SourceFacts;
  readonly table: string;
  readonly slot: string;
  readonly publication: string;
  readonly keep: boolean;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly maxEventBytes: number;
  readonly pollMs: number;
  readonly reportMs: number;
  readonly maxRetainedBytes: number;
  /** Something that cannot be put right by trying: the process should end. */
  readonly failed: (error: unknown) => void;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export class Relay {
  readonly #options: RelayOptions;
  readonly #stopping = new AbortController();
  readonly #tally = new Tally();
  readonly #table: OutboxTable | null;
  readonly #follower: LogFollower | null;
  #problem: string | null = null;
  #warnedOfGrowth = false;
  #running: Promise<unknown> = Promise.resolve();

  constructor(options: RelayOptions) {
    this.#options = options;
    const { source, sink, table, keep, batchRows, batchBytes, maxEventBytes, facts } = options;
    const tally = this.#tally;
    this.#table =
      facts.table === null
        ? null
        : new OutboxTable({ source, sink, tally, table, keep, batchRows, batchBytes, maxEventBytes });
    this.#follower =
      options.mode === 'poll'
        ? null
        : new LogFollower({
            ...options,
            tally,
            table: this.#table,
            statusMs: options.reportMs,
            pause: (ms) => this.#pause(ms),
          });
  }

  async start(): Promise<void> {
    if (this.#follower === null) await registerSource(this.#options.pool, this.#options.name, 'poll');
    else await this.#follower.prepare();
    this.#running = Promise.all([this.#carry(), this.#report()]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#reportOnce();
  }

  async #carry(): Promise<void> {
    const { signal } = this.#stopping;
    let pauseMs = FIRST_PAUSE_MS;
    const went = (): void => {
      if (this.#problem !== null) this.#options.log.info({ source: this.#options.name }, 'going on');
      this.#problem = null;
      pauseMs = FIRST_PAUSE_MS;
    };
    while (!signal.aborted) {
      try {
        if (this.#follower === null) await this.#poll(went);
        else await this.#follower.run(signal, went);
      } catch (error) {
        if (error instanceof RelayError && error.final) {
          this.#options.failed(error);
          return;
        }
        this.#note(error);
        await this.#pause(pauseMs);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  async #poll(went: () => void): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const carried = await this.#table!.carryBatch();
      went();
      if (carried === 0) await this.#pause(this.#options.pollMs);
    }
  }

  #note(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.#problem === null)
      this.#options.log.warn({ source: this.#options.name, err: error }, 'interrupted; trying again');
    this.#problem = message;
  }

  async #report(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#reportOnce();
      await this.#pause(this.#options.reportMs);
    }
  }

  /** Says how it goes. Whoever stands by leaves that to the one that works. */
  async #reportOnce(): Promise<void> {
    const { pool, name, reportMs } = this.#options;
    if (this.#follower?.standsBy) return;
    try {
      const { lagSeconds, retainedBytes } = await this.#measure();
      const growth = this.#watchGrowth(retainedBytes);
      const counts = this.#tally.take();
      await reportSource(pool, name, {
        ...counts,
        lagSeconds,
        retainedBytes,
        everySeconds: reportMs / 1000,
        confirmedLsn: this.#follower?.confirmedLsn ?? null,
        problem: this.#problem ?? growth,
      });
    } catch (error) {
      this.#options.log.debug({ err: error }, 'could not report');
    }
  }

  async #measure(): Promise<{ lagSeconds: number; retainedBytes: number | null }> {
    const { source, table, slot, facts } = this.#options;
    const oldestRow = facts.table === null ? null : await oldestWaitingSeconds(source, table);
    if (this.#follower === null) return { lagSeconds: oldestRow ?? 0, retainedBytes: null };
    const state = await readSlot(source, slot);
    const committedAt = this.#follower.oldestCommittedAt;
    const oldestArrival =
      committedAt === null || state === null ? 0 : Math.max(0, (state.now - committedAt) / 1000);
    return {
      lagSeconds: Math.max(oldestRow ?? 0, oldestArrival),
      retainedBytes: state?.retainedBytes ?? null,
    };
  }

  /** The source keeps its log until we confirm it: when that grows, its disk is in danger. */
  #watchGrowth(retainedBytes: number | null): string | null {
    const { maxRetainedBytes, log, name, slot } = this.#options;
    if (retainedBytes === null || retainedBytes <= maxRetainedBytes) {
      this.#warnedOfGrowth = false;
      return null;
    }
    const message = `The source keeps ${Math.round(retainedBytes / 2 ** 20)} MiB of log for the slot ${slot}, more than POSTHORN_RELAY_MAX_WAL_BYTES.`;
    if (!this.#warnedOfGrowth)
      log.warn(
        { source: name, slot, retainedBytes, maxRetainedBytes },
        `${message} A long transaction there, or a relay that cannot keep up; if the disk runs full, the source stops`,
      );
    this.#warnedOfGrowth = true;
    return message;
  }

  /** Ends early when the relay is to stop. */
  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopping;
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        cancel();
        signal.removeEventListener('abort', done);
        resolve();
      };
      const cancel = this.#options.clock.after(ms, done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}
