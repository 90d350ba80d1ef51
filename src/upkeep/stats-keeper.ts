/**
 * Adds the journal up into the figures, every few seconds, one process at a time: whichever comes first. Taking the rows
 * and adding them is one transaction, so a process that is killed in the middle of it leaves them to the next.
 *
 * With ten thousand busy endpoints a round is thirty thousand rows, and a row costs the database 27 µs. It may take a
 * twentieth of the time: the more rows, the longer the pause, and the later the figures are.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { Clock } from '../domain/clock.ts';
import { inTransaction, type Pool } from '../postgres/database.ts';
import { addEndpointStats, addEventStats, countedTypes, OTHER_TYPES } from '../postgres/queries/stats.ts';
import { setAside, takeJournal } from '../postgres/queries/stats-journal.ts';
import { aloneWithJournal } from '../postgres/queries/upkeep.ts';
import { JournalSums, type NameOfType, type TypeOfHour } from './count-journal.ts';
import { readJournal, type UnreadableRow } from './read-journal.ts';
import { Recurring } from './recurring.ts';

export interface StatsKeeperOptions {
  readonly pool: Pool;
  readonly clock: Clock;
  readonly everyMs: number;
  /** So many event types of a tenant (and of all together) are counted each by itself in an hour, the rest as one. */
  readonly typesPerTenant: number;
  readonly problem: (what: string, error: unknown) => void;
}

const ROWS_PER_ROUND = 2000;
const ROWS_AT_ONCE = 100;
const PAUSE_MS_PER_ROW = 0.5;
const NOTHING = { taken: 0, written: 0, unreadable: null };

/** What is in the journal when it stops is added by another process, or by this one when it is started again. */
export class StatsKeeper extends Recurring {
  readonly #options: StatsKeeperOptions;

  constructor(options: StatsKeeperOptions) {
    super(options.clock, options.everyMs);
    this.#options = options;
  }

  protected override async work(): Promise<void> {
    const { problem } = this.#options;
    let written = 0;
    try {
      for (let more = true; more && !this.stopped; ) {
        const round = await this.#addUp();
        written += round.written;
        if (round.unreadable !== null)
          problem('add up all statistics: see posthorn.stats_unreadable', new Error(round.unreadable));
        more = round.taken === ROWS_PER_ROUND;
      }
    } catch (error) {
      problem('add up statistics', error);
    }
    this.pauseMs = Math.max(this.#options.everyMs, written * PAUSE_MS_PER_ROW);
  }

  /** Returns how many rows of the journal were taken, into how many rows of figures, and what is wrong with them. */
  async #addUp(): Promise<{ taken: number; written: number; unreadable: string | null }> {
    return inTransaction(this.#options.pool, async (client) => {
      if (!(await aloneWithJournal(client))) return NOTHING;
      const taken = await takeJournal(client, ROWS_PER_ROUND);
      if (taken.length === 0) return NOTHING;
      const sums = new JournalSums();
      const unreadable: UnreadableRow[] = [];
      for (let i = 0; i < taken.length; i += ROWS_AT_ONCE) {
        const portion = readJournal(taken.slice(i, i + ROWS_AT_ONCE));
        sums.add(portion.rows);
        unreadable.push(...portion.unreadable);
        // Requests are served in this process: none of them waits for more than a portion.
        await yieldToOthers();
      }
      await setAside(client, unreadable);
      const types = sums.types();
      const hours = new Map(
        types.map(({ tenant, hour }) => [`${hour} ${tenant}`, { tenant, at: hour }] as const),
      );
      const known = await countedTypes(client, [...hours.values()]);
      const nameOf = namesOf(
        known.map(({ tenant, at, type }) => ({ tenant, hour: at, type })),
        types,
        this.#options.typesPerTenant,
      );
      const { endpoints, events } = sums.figures(nameOf);
      const written = (await addEndpointStats(client, endpoints)) + (await addEventStats(client, events));
      return {
        taken: taken.length,
        written,
        unreadable: unreadable[0]?.problem ?? null,
      };
    });
  }
}

/** First come, first counted: a type that has its own row in an hour keeps it. */
export function namesOf(
  known: readonly TypeOfHour[],
  wanted: readonly TypeOfHour[],
  most: number,
): NameOfType {
  const taken = new Map<string, Set<string>>();
  const typesOf = (tenant: string, hour: number): Set<string> => {
    const key = `${hour} ${tenant}`;
    let types = taken.get(key);
    if (types === undefined) {
      types = new Set();
      taken.set(key, types);
    }
    return types;
  };
  for (const { tenant, hour, type } of known) if (type !== OTHER_TYPES) typesOf(tenant, hour).add(type);
  for (const { tenant, hour, type } of wanted) {
    const types = typesOf(tenant, hour);
    if (types.size < most) types.add(type);
  }
  return (tenant, hour, type) => (typesOf(tenant, hour).has(type) ? type : OTHER_TYPES);
}
