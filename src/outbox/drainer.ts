/**
 * Moves rows that `posthorn.publish` committed from the outbox to the events.
 *
 *   published ──commit──▶ waiting ──read──▶ stored as an event; the same statement deletes the row
 *                           ▲  │
 *                           │  ├ another process stored it: nothing to do
 *                           │  ├ the database is unavailable: the row stays and is read again
 *                           │  ├ this row alone takes too long: it is tried again, after the rows behind it
 *                           │  ├ its tenant has too many unwritten deliveries: all rows of the tenant wait, others pass
 *                           │  └ this row alone fails ──▶ rejected (kept, with the reason)
 *                           └────────── posthorn.retry_rejected ───────────────┘
 *
 * Any number of processes may read the same rows, because the statement that stores them also locks and deletes them.
 * To save work, only the leader polls every few milliseconds. The others stand in for it: they read rarely, and only rows
 * that have waited so long that the leader must have failed.
 */
import type { Clock } from '../domain/clock.ts';
import type { CommittedEvent } from '../domain/event.ts';
import type { Uuid } from '../domain/ids.ts';
import { isProblem, Problem } from '../domain/problem.ts';
import type { OutboxStore } from '../ports/outbox-store.ts';
import { storeFailureOf } from '../ports/store-error.ts';
import { HeldTenants } from './held-tenants.ts';
import { FIRST, ReadPosition } from './read-position.ts';
import { readRow } from './read-row.ts';

/** Stores committed events and returns one answer per event. A `Problem` with code "invalid" is final. */
export interface CommittedEventSink {
  accept(events: readonly CommittedEvent[]): Promise<readonly (object | Error)[]>;
}

export interface DrainerOptions {
  readonly outbox: Pick<OutboxStore, 'read' | 'reject'>;
  readonly sink: CommittedEventSink;
  readonly clock: Clock;
  readonly isLeader: () => boolean;
  /** How often the leader reads while rows arrive. */
  readonly pollMs: number;
  /** How often the other processes read, and how old a row must be for them. */
  readonly standInMs: number;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly onRejected: (id: Uuid, reason: string) => void;
  /** Called once a minute while rows of a tenant wait because of its limit. */
  readonly onHeld: (tenant: string, reason: string) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface RejectedRow {
  readonly seq: string;
  readonly id: Uuid;
  readonly reason: string;
}

type Answers = ReadonlyMap<CommittedEvent, object | Error>;

const PAUSE_AFTER_FAILURE_MS = 200;
/** Most installations rarely use the outbox, or never do. Without rows the leader reads up to this many times less often. */
const MAX_IDLE_FACTOR = 100;
/** The pause between two reads, as a share of the time since a row was last found or numbered. */
const IDLE_SHARE = 0.01;
/** Without rows for this long, the other processes read this many times less often. */
const STAND_IN_IDLE_MS = 60_000;
const STAND_IN_IDLE_FACTOR = 5;
const CHECKS_PER_STAND_IN = 4;
/** A row that fails this often for a reason that may be temporary is rejected. */
const MAX_FAILURES = 5;

export class Drainer {
  readonly #options: DrainerOptions;
  readonly #position = new ReadPosition();
  readonly #held: HeldTenants;
  /** How often each waiting row has failed, by `seq`. */
  #failures = new Map<string, number>();
  #lastReadAt = Number.NEGATIVE_INFINITY;
  #lastRowAt: number;
  /** The highest number of a row that this process knows of. */
  #lastSeq = Number.NaN;
  /** True during a pause that new rows may end. */
  #isResting = false;
  #cancel: (() => void) | null = null;
  #running: Promise<void> | null = null;
  #isStopped = false;

  constructor(options: DrainerOptions) {
    this.#options = options;
    this.#lastRowAt = options.clock.monotonic();
    this.#held = new HeldTenants(options.onHeld);
  }

  start(): void {
    this.#schedule(0);
  }

  /** Resolves when the rows that were read are stored. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#running;
  }

  /** Call this often with the highest number that a row got so far. If it has changed, a transaction publishes rows. */
  onSeq(seq: number): void {
    if (seq === this.#lastSeq) return;
    this.#lastSeq = seq;
    this.#lastRowAt = this.#options.clock.monotonic();
    if (!this.#isResting) return;
    this.#cancel?.();
    this.#schedule(0);
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#cancel = this.#options.clock.after(delayMs, () => {
      this.#isResting = false;
      this.#running = this.#drain().finally(() => {
        this.#running = null;
      });
    });
  }

  async #drain(): Promise<void> {
    const { clock, isLeader } = this.#options;
    try {
      let hasMore = isLeader() || clock.monotonic() - this.#lastReadAt >= this.#standInMs;
      while (hasMore && !this.#isStopped) hasMore = await this.runOnce();
      this.#isResting = this.#failures.size === 0;
      this.#schedule(this.#isResting ? this.#pollMs : PAUSE_AFTER_FAILURE_MS);
    } catch (error) {
      this.#options.onProblem('read the outbox', error);
      this.#schedule(PAUSE_AFTER_FAILURE_MS);
    }
  }

  get #pollMs(): number {
    const { isLeader, pollMs } = this.#options;
    // Between its reads, a stand-in only checks whether it has become the leader.
    if (!isLeader()) return Math.max(pollMs, this.#standInMs / CHECKS_PER_STAND_IN);
    return Math.min(Math.max(pollMs, this.#idleMs * IDLE_SHARE), pollMs * MAX_IDLE_FACTOR);
  }

  /** How often a process that is not the leader reads. */
  get #standInMs(): number {
    const { standInMs } = this.#options;
    return this.#idleMs < STAND_IN_IDLE_MS ? standInMs : standInMs * STAND_IN_IDLE_FACTOR;
  }

  get #idleMs(): number {
    return this.#options.clock.monotonic() - this.#lastRowAt;
  }

  /** Moves one batch. Returns true if it was full, so that there may be more. */
  async runOnce(): Promise<boolean> {
    const { outbox, clock, isLeader, standInMs, batchRows, batchBytes } = this.#options;
    const startedAt = clock.monotonic();
    this.#lastReadAt = startedAt;
    const afterSeq = this.#position.afterSeq(startedAt);
    const rows = await outbox.read({
      afterSeq,
      minAgeMs: isLeader() ? 0 : standInMs,
      maxRows: batchRows,
      maxBytes: batchBytes,
      exceptTenants: this.#held.startRead(startedAt, afterSeq === FIRST),
    });
    const now = clock.monotonic();
    this.#position.recordRead({ afterSeq, tookMs: now - startedAt, lastSeq: rows.at(-1)?.seq ?? null, now });
    if (rows.length === 0) return false;
    this.#lastRowAt = now;

    const events: CommittedEvent[] = [];
    const rejected: RejectedRow[] = [];
    for (const row of rows) {
      const event = readRow(row);
      if (typeof event === 'string') rejected.push({ seq: row.seq, id: row.id, reason: event });
      else events.push(event);
    }
    const isFull = rows.length === batchRows;
    const answered = await this.#acceptAll(events, isFull);
    rejected.push(...this.#countFailures(events, answered));
    if (rejected.length > 0) await this.#reject(rejected);
    return isFull && [...answered.values()].some((answer) => !(answer instanceof Error));
  }

  /**
   * Returns an answer for each event that it tried. Tries rows that failed before after the others, so that the others do not fail
   * with them, and skips them while more rows wait behind a full batch.
   */
  async #acceptAll(events: readonly CommittedEvent[], isFull: boolean): Promise<Answers> {
    const { sink } = this.#options;
    const hasFailed = ({ outboxSeq }: CommittedEvent): boolean => this.#failures.has(outboxSeq!);
    const first = events.filter((event) => !hasFailed(event));
    const last = isFull && first.length > 0 ? [] : events.filter(hasFailed);
    const answered = new Map<CommittedEvent, object | Error>();
    for (const part of [first, last]) {
      if (part.length === 0) continue;
      const answers = await sink.accept(part);
      for (const [index, answer] of answers.entries()) answered.set(part[index]!, answer);
    }
    return answered;
  }

  /** Counts the failures of rows that wait for another try. Returns the rows that are rejected. */
  #countFailures(events: readonly CommittedEvent[], answered: Answers): RejectedRow[] {
    const rejected: RejectedRow[] = [];
    const failures = new Map<string, number>();
    for (const event of events) {
      const answer = answered.get(event);
      if (answer === undefined) failures.set(event.outboxSeq!, this.#failures.get(event.outboxSeq!)!);
      if (!(answer instanceof Error)) continue;
      const { id, tenant, outboxSeq } = event;
      const seq = outboxSeq!;
      if (isProblem(answer, 'rate_limited')) {
        this.#held.add(tenant, answer.message, this.#options.clock.monotonic());
        continue;
      }
      const count = (this.#failures.get(seq) ?? 0) + (isOutage(answer) ? 0 : 1);
      if (isProblem(answer, 'invalid') || count >= MAX_FAILURES)
        rejected.push({ seq, id, reason: reasonOf(answer) });
      else failures.set(seq, count);
    }
    this.#failures = failures;
    return rejected;
  }

  async #reject(rows: readonly RejectedRow[]): Promise<void> {
    await this.#options.outbox.reject(rows);
    for (const { id, reason } of rows) this.#options.onRejected(id, reason);
  }
}

/** False for a timeout: the row was alone in its statement, so the row causes the timeout. */
const isOutage = (error: Error): boolean =>
  isProblem(error, 'unavailable') && storeFailureOf(error.cause) !== 'timeout';

/** A `Problem` hides the database's message from API clients. Producers that use the outbox may see it. */
function reasonOf(error: Error): string {
  const { cause } = error;
  return error instanceof Problem && cause instanceof Error
    ? `${error.message} (${cause.message})`
    : error.message;
}
