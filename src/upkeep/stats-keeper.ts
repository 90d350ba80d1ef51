/**
 * Adds the statistics journal up into totals every few seconds. One process at a time does it. Taking the rows and
 * adding to the totals is one commit, so a killed process leaves the rows to the next one.
 *
 * With ten thousand busy endpoints a round writes thirty thousand rows, which cost the database 27 µs each. The pause
 * grows with the number of rows, so that adding up takes at most a twentieth of the time.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Clock } from '../domain/clock.ts';
import type {
  JournalRound,
  JournalRow,
  StatisticsStore,
  UnreadableJournalRow,
} from '../ports/statistics-store.ts';
import { CountedTypes } from './counted-types.ts';
import { JournalSums } from './journal-sums.ts';
import { readJournal } from './read-journal.ts';
import { Recurring } from './recurring.ts';

export interface StatsKeeperOptions {
  readonly store: StatisticsStore;
  readonly clock: Clock;
  readonly everyMs: number;
  /** How many event types have totals of their own, per tenant and hour, and for all tenants together. */
  readonly typesPerTenant: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface RoundResult {
  readonly hasMore: boolean;
  readonly written: number;
  /** Why the first unreadable row cannot be read. Null: all could be read. */
  readonly unreadable: string | null;
}

const ROWS_PER_ROUND = 2000;
/** A batch of a thousand events with long types has a row of 100 kB, so a round also ends when it has read this much. */
const BYTES_PER_ROUND = 8_000_000;
const ROWS_PER_TAKE = 100;
/** About two milliseconds of work. This process also serves requests, which must not wait for more than one portion. */
const BYTES_PER_PORTION = 50_000;
const PAUSE_MS_PER_ROW = 0.5;

export class StatsKeeper extends Recurring {
  readonly #options: StatsKeeperOptions;

  constructor(options: StatsKeeperOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { store, everyMs, onProblem } = this.#options;
    let written = 0;
    try {
      for (let hasMore = true; hasMore && !this.isStopped; ) {
        const result = await store.runRound((round) => this.#addUp(round));
        if (result === null) break;
        written += result.written;
        if (result.unreadable !== null)
          onProblem('add up all statistics (see posthorn.stats_unreadable)', new Error(result.unreadable));
        hasMore = result.hasMore;
      }
    } catch (error) {
      onProblem('add up statistics', error);
    }
    this.pauseMs = Math.max(everyMs, written * PAUSE_MS_PER_ROW);
  }

  async #addUp(round: JournalRound): Promise<RoundResult> {
    const types = new CountedTypes(this.#options.typesPerTenant);
    const sums = new JournalSums((tenant, hour, type) => types.nameOf(tenant, hour, type));
    const unreadable: UnreadableJournalRow[] = [];
    let [takenRows, takenBytes] = [0, 0];
    let hasMore = true;
    while (hasMore && takenRows < ROWS_PER_ROUND && takenBytes < BYTES_PER_ROUND) {
      const rows = await round.takeRows(ROWS_PER_TAKE);
      hasMore = rows.length === ROWS_PER_TAKE;
      takenRows += rows.length;
      for (const { counts } of rows) takenBytes += counts.length;
      for (const portion of splitByBytes(rows, BYTES_PER_PORTION)) {
        const read = readJournal(portion);
        unreadable.push(...read.unreadable);
        const hours = types.findMissingHours(read.readable);
        if (hours.length > 0) types.addHours(hours, await round.findCountedTypes(hours));
        sums.add(read.readable);
        await yieldToEventLoop();
      }
    }
    if (takenRows === 0) return { hasMore: false, written: 0, unreadable: null };
    if (unreadable.length > 0) await round.setAside(unreadable);
    const { endpoints, events } = sums.buckets();
    const written = (await round.addEndpointTotals(endpoints)) + (await round.addEventTotals(events));
    await round.addSkipped(sums.skipped());
    return { hasMore, written, unreadable: unreadable[0]?.problem ?? null };
  }
}

function* splitByBytes(rows: readonly JournalRow[], maxBytes: number): Iterable<readonly JournalRow[]> {
  let portion: JournalRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (portion.length > 0 && bytes + row.counts.length > maxBytes) {
      yield portion;
      portion = [];
      bytes = 0;
    }
    portion.push(row);
    bytes += row.counts.length;
  }
  if (portion.length > 0) yield portion;
}
