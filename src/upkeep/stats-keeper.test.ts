import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { type EventBucket, HOUR } from '../domain/statistics.ts';
import type { JournalRound, JournalRow } from '../ports/statistics-store.ts';
import { StatsKeeper } from './stats-keeper.ts';

test('OBS-1: a tenant that invents a type for each event does not block the process, and all its events are counted', async () => {
  const ROWS = 300;
  const TYPES_PER_ROW = 1_000;
  const journal: JournalRow[] = Array.from({ length: ROWS }, (_, row) => ({
    at: Date.now(),
    counts: JSON.stringify({
      accepted: Array.from({ length: TYPES_PER_ROW }, (_, n) => [
        'acme',
        `order.number${row}-${n}.created`,
        1,
      ]),
    }),
  }));
  const stored: EventBucket[] = [];
  const round: JournalRound = {
    takeRows: async (maxRows) => journal.splice(0, maxRows),
    setAside: async () => {},
    findCountedTypes: async (hours) =>
      hours.flatMap(({ tenant, at }) =>
        stored
          .filter((bucket) => bucket.tenant === tenant && bucket.seconds === HOUR && bucket.type !== '')
          .map(({ type }) => ({ tenant, at, type })),
      ),
    addEndpointTotals: async () => 0,
    addEventTotals: async (buckets) => stored.push(...buckets),
    addSkipped: async () => {},
  };
  let turns = 0;
  let isDone = false;
  const keeper = new StatsKeeper({
    store: { runRound: (work) => work(round) },
    clock: systemClock,
    everyMs: 1,
    typesPerTenant: 10,
    onProblem: (_what, error) => {
      throw error;
    },
  });
  const counting = (async () => {
    for (; !isDone; turns += 1) await nextTurn();
  })();
  keeper.start();
  await vi.waitFor(() => expect(journal).toHaveLength(0), { timeout: 30_000 });
  await keeper.stop();
  isDone = true;
  await counting;
  const hours = stored.filter(({ tenant, seconds }) => tenant === 'acme' && seconds === HOUR);
  const accepted = (isWanted: (type: string) => boolean): number =>
    hours.reduce((sum, { type, totals }) => sum + (isWanted(type) ? totals.accepted : 0), 0);
  expect(accepted((type) => type === '')).toBe(ROWS * TYPES_PER_ROW);
  expect(accepted((type) => type !== '')).toBe(ROWS * TYPES_PER_ROW);
  expect(new Set(hours.map(({ type }) => type)).size).toBe(12);
  // One row is about 40 kB, so each has a turn of its own.
  expect(turns).toBeGreaterThanOrEqual(ROWS);
});
