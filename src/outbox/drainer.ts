/**
 * Moves what `posthorn.publish` committed from the outbox to the events.
 *
 *   published ──commit──▶ waiting ──read──▶ stored as an event; the same statement deletes the row
 *                           ▲  │
 *                           │  ├ another process took it: nothing to do
 *                           │  ├ the database is away: stays, tried again
 *                           │  └ refused, itself and not its neighbours ──▶ rejected (kept, with the reason)
 *                           └────────── posthorn.retry_rejected ───────────────┘
 *
 * Which process reads is a matter of economy only: rows are locked and deleted by the statement that stores them, so any
 * number may read the same ones. One of them looks every few milliseconds; the others look now and then, for
 * something that has waited so long that the one must be in trouble.
 */
import type { Clock } from '../domain/clock.ts';
import type { CommittedEvent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import type { Pool } from '../postgres/database.ts';
import { readOutbox, rejectOutboxRows } from '../postgres/queries/outbox.ts';
import { ReadPosition } from './read-position.ts';
import { readRow } from './read-row.ts';

export interface DrainerOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  /** Whether this process is the one that looks often. */
  readonly leads: () => boolean;
  readonly pollMs: number;
  /** How often the others look, and how long a row has to have waited for them. */
  readonly standInMs: number;
  readonly batchRows: number;
  readonly batchBytes: number;
  /** Stores them, and answers for each. A Problem with code "invalid" is final. */
  readonly accept: (events: readonly CommittedEvent[]) => Promise<readonly (object | Error)[]>;
  readonly rejected: (id: Uuid, reason: string) => void;
  readonly problem: (what: string, error: unknown) => void;
}

const PAUSE_AFTER_FAILURE_MS = 200;
/** What the database refuses for reasons that may pass is refused so often before it is put aside. */
const REFUSALS_TO_REJECT = 5;

export class Drainer {
  readonly #options: DrainerOptions;
  readonly #position = new ReadPosition();
  /** How often each row that still waits was refused. */
  #refusals = new Map<string, number>();
  #lastLookAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #stopped = false;

  constructor(options: DrainerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#next(0);
  }

  /** What has been read is stored; the rest is for others, or for later. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#running;
  }

  #next(delayMs: number): void {
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      this.#running = this.#look().finally(() => {
        this.#running = null;
      });
    });
  }

  async #look(): Promise<void> {
    const { clock, leads, pollMs, standInMs } = this.#options;
    try {
      let more = leads() || clock.monotonic() - this.#lastLookAt >= standInMs;
      while (more && !this.#stopped) more = await this.runOnce();
      this.#next(this.#refusals.size > 0 ? PAUSE_AFTER_FAILURE_MS : pollMs);
    } catch (error) {
      this.#options.problem('read the outbox', error);
      this.#next(PAUSE_AFTER_FAILURE_MS);
    }
  }

  /** One batch. True: it was full, there may be more. */
  async runOnce(): Promise<boolean> {
    const { pool, clock, leads, standInMs, batchRows, batchBytes } = this.#options;
    const startedAt = clock.monotonic();
    this.#lastLookAt = startedAt;
    const afterSeq = this.#position.afterSeq(startedAt);
    const rows = await readOutbox(pool, {
      afterSeq,
      minAgeMs: leads() ? 0 : standInMs,
      maxRows: batchRows,
      maxBytes: batchBytes,
    });
    const now = clock.monotonic();
    this.#position.wasRead(afterSeq, now - startedAt, rows.at(-1)?.seq ?? null, now);
    if (rows.length === 0) return false;

    const events: CommittedEvent[] = [];
    const refused: { seq: string; id: Uuid; reason: string }[] = [];
    for (const row of rows) {
      const event = readRow(row);
      if (typeof event === 'string') refused.push({ seq: row.seq, id: row.id, reason: event });
      else events.push(event);
    }
    const answers = events.length > 0 ? await this.#options.accept(events) : [];
    const refusals = new Map<string, number>();
    for (const [index, answer] of answers.entries()) {
      if (!(answer instanceof Error)) continue;
      const { id, outboxSeq } = events[index]!;
      const seq = outboxSeq!;
      const count = (this.#refusals.get(seq) ?? 0) + (isAway(answer) ? 0 : 1);
      if (isFinal(answer) || count >= REFUSALS_TO_REJECT) refused.push({ seq, id, reason: reasonOf(answer) });
      else refusals.set(seq, count);
    }
    this.#refusals = refusals;
    await this.#reject(refused);
    return rows.length === batchRows && refusals.size === 0;
  }

  async #reject(refused: readonly { seq: string; id: Uuid; reason: string }[]): Promise<void> {
    if (refused.length === 0) return;
    await rejectOutboxRows(this.#options.pool, refused);
    for (const { id, reason } of refused) this.#options.rejected(id, reason);
  }
}

const isFinal = (error: Error): boolean => error instanceof Problem && error.code === 'invalid';
const isAway = (error: Error): boolean => error instanceof Problem && error.code === 'unavailable';

/** The database's own words are behind a Problem that was written for somebody who may not see them. */
function reasonOf(error: Error): string {
  const { cause } = error;
  return cause instanceof Error ? `${error.message} (${cause.message})` : error.message;
}
