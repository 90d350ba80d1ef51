/**
 * Records results that a shared batch could not record, because another transaction holds a lock on a row of one of them,
 * or because one of them takes too long. It runs beside the shared batches, so that the others do not wait.
 *
 *   add ─▶ try a batch, without waiting for locks ─▶ recorded
 *              │ blocked, of several endpoints: divide between endpoints, and try the parts first
 *              │ blocked, of one endpoint: halve, and try the halves after all others
 *              └ a single result is blocked: set aside, tried again later
 *
 * Usually the rows of one endpoint are locked. So batches are sorted by endpoint and divided between endpoints first: then a few
 * statements record the results of all others, however many results of the locked endpoint wait. Its further results come here
 * directly. Retrying takes at most a tenth of the time, because the shared batches use the same connection.
 */
import type { Clock } from '../domain/clock.ts';
import type { Uuid } from '../domain/ids.ts';
import { StoreError, type StoreFailure } from '../ports/store-error.ts';
import { divideBetweenEndpoints, halve, type PendingResult } from './pending-result.ts';

export interface BlockedResultsOptions {
  readonly clock: Clock;
  /** Records a batch, and gives up soon if it has to wait. Throws `StoreError`. */
  readonly write: (batch: readonly PendingResult[]) => Promise<void>;
  /** Gets a batch that the store refuses for another reason. */
  readonly onRefused: (batch: readonly PendingResult[]) => void;
  readonly onProblem: (what: string, error: unknown) => void;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5_000;
/** After a round of retries, the pause is this many times as long as the round took. */
const PAUSE_PER_ROUND = 10;
const OUTAGE_PAUSE_MS = 300;
const MAX_BATCH = 200;
/** After this many failures in a row, dividing stops: probably the whole table is locked. */
const MAX_FAILURES_IN_A_ROW = 32;

/** Failures of single rows that end without a change of the batch. */
const BLOCKED: ReadonlySet<StoreFailure> = new Set(['conflict', 'timeout', 'missing_partition']);
const OUTAGES: ReadonlySet<StoreFailure> = new Set(['unavailable', 'outcome_unknown']);

/** An error that does not come from the store is a bug, and would happen again. */
export const settleFailureOf = (error: unknown): StoreFailure =>
  error instanceof StoreError ? error.failure : 'other';

export const isBlockedBy = (failure: StoreFailure): boolean => BLOCKED.has(failure);

export class BlockedResults {
  readonly #options: BlockedResultsOptions;
  /** Not tried yet. */
  #added: PendingResult[] = [];
  /** Parts of blocked batches of several endpoints, the next one first. */
  readonly #divided: (readonly PendingResult[])[] = [];
  /** Parts of blocked batches of one endpoint, and batches that are tried again, the next one first. */
  readonly #parts: (readonly PendingResult[])[] = [];
  #aside: PendingResult[] = [];
  readonly #counts = new Map<Uuid, number>();
  #total = 0;
  #isPartsTurn = false;
  /** Of batches of several endpoints, and of batches of one. */
  #failuresInARow = { several: 0, one: 0 };
  #running: Promise<void> | null = null;
  #cancelRetry: (() => void) | null = null;

  constructor(options: BlockedResultsOptions) {
    this.#options = options;
  }

  /** How many results wait here. */
  get total(): number {
    return this.#total;
  }

  countOf(endpointId: Uuid): number {
    return this.#counts.get(endpointId) ?? 0;
  }

  add(results: readonly PendingResult[]): void {
    this.#count(results, 1);
    this.#added.push(...results);
    this.#running ??= this.#run();
  }

  /** Tries everything once more, and resolves when no batch is being tried. */
  async waitUntilIdle(): Promise<void> {
    if (this.#aside.length > 0) this.#retryAside();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const startedAt = clock.monotonic();
    this.#failuresInARow = { several: 0, one: 0 };
    // Let the rest of the batch be added first.
    await Promise.resolve();
    for (let batch = this.#next(); batch !== undefined; batch = this.#next()) await this.#write(batch);
    this.#running = null;
    if (this.#aside.length === 0) return;
    const pauseMs = Math.max(FIRST_PAUSE_MS, PAUSE_PER_ROUND * (clock.monotonic() - startedAt));
    this.#cancelRetry ??= clock.after(Math.min(pauseMs, LONGEST_PAUSE_MS), () => this.#retryAside());
  }

  /** Divided batches come first. Then new results and parts of blocked batches take turns. */
  #next(): readonly PendingResult[] | undefined {
    const divided = this.#divided.shift();
    if (divided !== undefined) return divided;
    this.#isPartsTurn = !this.#isPartsTurn;
    if (this.#added.length === 0 || (this.#isPartsTurn && this.#parts.length > 0)) return this.#parts.shift();
    return this.#added.splice(0, MAX_BATCH).sort(byEndpoint);
  }

  /** Tries all results that were set aside together first: if the lock was released, one statement records them all. */
  #retryAside(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = null;
    const aside = this.#aside.sort(byEndpoint);
    this.#aside = [];
    for (let from = 0; from < aside.length; from += MAX_BATCH)
      this.#parts.push(aside.slice(from, from + MAX_BATCH));
    if (aside.length > 0) this.#running ??= this.#run();
  }

  async #write(batch: readonly PendingResult[]): Promise<void> {
    const { clock, write, onRefused, onProblem } = this.#options;
    try {
      await write(batch);
      this.#failuresInARow = { several: 0, one: 0 };
      this.#count(batch, -1);
    } catch (error) {
      const failure = settleFailureOf(error);
      if (isBlockedBy(failure)) return this.#divide(batch, error);
      onProblem('record results', error);
      if (OUTAGES.has(failure)) {
        this.#parts.unshift(batch);
        await new Promise<void>((resolve) => clock.after(OUTAGE_PAUSE_MS, resolve));
        return;
      }
      this.#count(batch, -1);
      onRefused(batch);
    }
  }

  #divide(batch: readonly PendingResult[], error: unknown): void {
    const byEndpoints = divideBetweenEndpoints(batch);
    const halves = byEndpoints ?? halve(batch);
    const failures = ++this.#failuresInARow[byEndpoints === null ? 'one' : 'several'];
    if (halves !== null && failures <= MAX_FAILURES_IN_A_ROW) {
      if (byEndpoints === null) this.#parts.push(...halves);
      else this.#divided.push(...halves);
      return;
    }
    this.#options.onProblem('record results that another transaction blocks', error);
    if (halves === null) this.#aside.push(...batch);
    // Put them first for the next retry: some of them may not be blocked.
    else this.#aside.unshift(...batch);
  }

  #count(batch: readonly PendingResult[], sign: 1 | -1): void {
    this.#total += sign * batch.length;
    for (const { settlement } of batch) {
      const count = this.countOf(settlement.endpointId) + sign;
      if (count === 0) this.#counts.delete(settlement.endpointId);
      else this.#counts.set(settlement.endpointId, count);
    }
  }
}

const byEndpoint = (a: PendingResult, b: PendingResult): number => {
  const [first, second] = [a.settlement.endpointId, b.settlement.endpointId];
  return first < second ? -1 : first > second ? 1 : 0;
};
