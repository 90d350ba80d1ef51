/**
 * Moves events from a source to Posthorn until it is stopped, through restarts of either database. It logs one line
 * when it is interrupted, retries with growing pauses, and logs one line when it continues.
 */
import type { Clock } from '../domain/clock.ts';
import type { Pool } from '../postgres/database.ts';
import { readOldestWaitingSeconds, readSlot, type SourceFacts } from '../postgres/queries/outbox-table.ts';
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
  /** Called with an error that trying again cannot fix: the process should end. */
  readonly onFailed: (error: unknown) => void;
}

const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;

export class Relay {
  readonly #options: RelayOptions;
  readonly #stopping = new AbortController();
  readonly #tally = new Tally();
  readonly #table: OutboxTable | null;
  readonly #follower: LogFollower | null;
  #problem: string | null = null;
  #hasWarnedOfGrowth = false;
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
    this.#running = Promise.all([this.#run(), this.#report()]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#reportOnce();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let pauseMs = FIRST_PAUSE_MS;
    const onProgress = (): void => {
      if (this.#problem !== null)
        this.#options.log.info({ source: this.#options.name }, 'the relay continues');
      this.#problem = null;
      pauseMs = FIRST_PAUSE_MS;
    };
    while (!signal.aborted) {
      try {
        if (this.#follower === null) await this.#poll(onProgress);
        else await this.#follower.run(signal, onProgress);
      } catch (error) {
        if (error instanceof RelayError && error.final) {
          this.#options.onFailed(error);
          return;
        }
        this.#reportInterruption(error);
        await this.#pause(pauseMs);
        pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
      }
    }
  }

  async #poll(onProgress: () => void): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const moved = await this.#table!.moveBatch();
      onProgress();
      if (moved === 0) await this.#pause(this.#options.pollMs);
    }
  }

  #reportInterruption(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.#problem === null)
      this.#options.log.warn(
        { source: this.#options.name, err: error },
        'the relay was interrupted; trying again',
      );
    this.#problem = message;
  }

  async #report(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#reportOnce();
      await this.#pause(this.#options.reportMs);
    }
  }

  /** Writes the state of this relay to Posthorn's database. A standby leaves that to the active relay. */
  async #reportOnce(): Promise<void> {
    const { pool, name, reportMs } = this.#options;
    if (this.#follower?.isStandby) return;
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
      this.#options.log.debug({ err: error }, 'could not report the state of the relay');
    }
  }

  async #measure(): Promise<{ lagSeconds: number; retainedBytes: number | null }> {
    const { source, table, slot, facts } = this.#options;
    const oldestRow = facts.table === null ? null : await readOldestWaitingSeconds(source, table);
    if (this.#follower === null) return { lagSeconds: oldestRow ?? 0, retainedBytes: null };
    const state = await readSlot(source, slot);
    const committedAt = this.#follower.oldestCommittedAt;
    const oldestChange =
      committedAt === null || state === null ? 0 : Math.max(0, (state.now - committedAt) / 1000);
    return {
      lagSeconds: Math.max(oldestRow ?? 0, oldestChange),
      retainedBytes: state?.retainedBytes ?? null,
    };
  }

  /** The source keeps its log until the relay confirms it. If that grows too much, the source's disk runs full. */
  #watchGrowth(retainedBytes: number | null): string | null {
    const { maxRetainedBytes, log, name, slot } = this.#options;
    if (retainedBytes === null || retainedBytes <= maxRetainedBytes) {
      this.#hasWarnedOfGrowth = false;
      return null;
    }
    const message = `The source keeps ${Math.round(retainedBytes / 2 ** 20)} MiB of log for the slot ${slot}, more than POSTHORN_RELAY_MAX_WAL_BYTES.`;
    if (!this.#hasWarnedOfGrowth)
      log.warn(
        { source: name, slot, retainedBytes, maxRetainedBytes },
        `${message} The source has a long transaction, or the relay cannot keep up. If the disk runs full, the source stops`,
      );
    this.#hasWarnedOfGrowth = true;
    return message;
  }

  /** Ends early if the relay is stopped. */
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
