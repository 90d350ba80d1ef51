/**
 * Adds the statistics journal up into totals every few seconds. One process at a time does it. Taking the rows and
 * adding to the totals is one commit, so a killed process leaves the rows to the next one.
 *
 * With ten thousand busy endpoints a round writes thirty thousand rows, which cost the database 27 µs each. The pause
 * grows with the number of rows, so that adding up takes at most a twentieth of the time.
 */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Clock } from '../domain/clock.ts';
import type { JournalRound, StatisticsStore, UnreadableJournalRow } from '../ports/statistics-store.ts';
import { JournalSums, limitTypes, type NameOfType } from './journal-sums.ts';
import { readJournal } from './read-journal.ts';
import { Recurring } from './recurring.ts';

export interface StatsKeeperOptions {
  readonly store: StatisticsStore;
  readonly clock: Clock;
  readonly everyMs: number;
  /** How many event types per tenant (and for all tenants together) are counted one by one in an hour. */
  readonly typesPerTenant: number;
  readonly onProblem: (what: string, error: unknown) => void;
}

interface RoundResult {
  readonly taken: number;
  readonly written: number;
  /** Why the first unreadable row cannot be read. Null: all could be read. */
  readonly unreadable: string | null;
}

const ROWS_PER_ROUND = 2000;
const ROWS_PER_PORTION = 100;
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
        hasMore = result.taken === ROWS_PER_ROUND;
      }
    } catch (error) {
      onProblem('add up statistics', error);
    }
    this.pauseMs = Math.max(everyMs, written * PAUSE_MS_PER_ROW);
  }

  async #addUp(round: JournalRound): Promise<RoundResult> {
    const rows = await round.takeRows(ROWS_PER_ROUND);
    if (rows.length === 0) return { taken: 0, written: 0, unreadable: null };
    const sums = new JournalSums();
    const unreadable: UnreadableJournalRow[] = [];
    for (let i = 0; i < rows.length; i += ROWS_PER_PORTION) {
      const portion = readJournal(rows.slice(i, i + ROWS_PER_PORTION));
      sums.add(portion.readable);
      unreadable.push(...portion.unreadable);
      // This process also serves requests: they must not wait for more than one portion.
      await yieldToEventLoop();
    }
    if (unreadable.length > 0) await round.setAside(unreadable);
    const { endpoints, events } = sums.buckets(await this.#nameTypes(round, sums));
    const written = (await round.addEndpointTotals(endpoints)) + (await round.addEventTotals(events));
    await round.addSkipped(sums.skipped());
    return { taken: rows.length, written, unreadable: unreadable[0]?.problem ?? null };
  }

  async #nameTypes(round: JournalRound, sums: JournalSums): Promise<NameOfType> {
    const found = sums.types();
    const hours = new Map(
      found.map(({ tenant, hour }) => [`${hour} ${tenant}`, { tenant, at: hour }] as const),
    );
    const counted = await round.findCountedTypes([...hours.values()]);
    return limitTypes(
      counted.map(({ tenant, at, type }) => ({ tenant, hour: at, type })),
      found,
      this.#options.typesPerTenant,
    );
  }
}
