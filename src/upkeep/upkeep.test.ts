import { expect, test } from 'vitest';
import { DatabaseClock, STEADY_AFTER_MS } from '../domain/clock.ts';
import type { RetentionStore } from '../ports/retention-store.ts';
import type { UpkeepStore } from '../ports/upkeep-store.ts';
import { Upkeep } from './upkeep.ts';

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

/** Upkeep on virtual time, with stores that record which of their methods were called, and have nothing to delete. */
function createUpkeep() {
  let elapsedMs = 0;
  let aheadMs = 0;
  let round: (() => void) | null = null;
  const base = {
    now: () => NOW + elapsedMs,
    monotonic: () => elapsedMs,
    after: (_: number, task: () => void) => {
      round = task;
      return () => {};
    },
  };
  const clock = new DatabaseClock(base);
  const called = new Set<string>();
  const onCall = new Map<string, () => void>();
  const recordCalls = (answers: Record<string, unknown>): unknown =>
    new Proxy(
      {},
      {
        get: (_, name: string) => {
          return async (work: unknown) => {
            called.add(name);
            onCall.get(name)?.();
            if (name === 'runExclusively') await (work as () => Promise<void>)();
            return name in answers ? answers[name] : 0;
          };
        },
      },
    );
  const answers = {
    findByDeadRate: [],
    findFailing: [],
    listTenantRetentions: [],
    dropDetached: [],
    expireDeadLetters: { count: 0, endpointIds: [] },
    findReplacement: null,
    findExpired: null,
    stripPayloads: false,
    redactOldAttempts: false,
  };
  const paused: boolean[] = [];
  const upkeep = new Upkeep({
    store: recordCalls(answers) as UpkeepStore,
    retention: recordCalls(answers) as RetentionStore,
    clock,
    everyMs: 60_000,
    days: {
      events: 90,
      payloads: 30,
      deliveries: 90,
      attempts: 90,
      deadLetters: 90,
      audit: 90,
      statistics: 90,
    },
    minuteStatisticsMs: 7_200_000,
    skippedPerEndpoint: 100,
    skippedRetentionMs: DAY_MS,
    autoDisable: { deadRate: 0.5, minDeliveries: 1, minMs: 0, failingMs: DAY_MS },
    checkClock: async () => {
      clock.correct(NOW + elapsedMs + aheadMs);
      return clock.isSteady;
    },
    onPaused: (isPaused) => paused.push(isPaused),
    onDropped: () => {},
    onDeadLettersExpired: () => {},
    onDisabled: () => {},
    onProblem: (what, error) => {
      throw new Error(what, { cause: error });
    },
  });
  upkeep.start();
  return {
    paused,
    onCall,
    /** An answer of the database says that its clock is ahead by this much. */
    jump: (ms: number): void => clock.correct(NOW + elapsedMs + ms),
    setClock: (ms: number): void => {
      aheadMs = ms;
    },
    /** Lets a minute pass and runs a round. Returns the methods that were called. */
    async runRound(): Promise<ReadonlySet<string>> {
      called.clear();
      elapsedMs += 60_000;
      const run = round!;
      round = null;
      run();
      while (round === null) await new Promise(setImmediate);
      return new Set(called);
    },
  };
}

const BY_AGE = [
  'findFailing',
  'deleteIdempotencyKeys',
  'deleteAuditEntries',
  'expireDeadLetters',
  'dropDetached',
];

test.each([40, -40])(
  "deletes, drops and disables nothing after a jump of the database's clock by %d days, until it was steady for an hour",
  async (days) => {
    const { runRound, setClock, paused } = createUpkeep();
    for (const name of BY_AGE) expect(await runRound()).toContain(name);
    setClock(days * DAY_MS);
    for (const aheadMs of [days * DAY_MS, days * DAY_MS, 0, 0]) {
      setClock(aheadMs);
      const called = await runRound();
      expect(called).toContain('ensurePartitions');
      for (const name of BY_AGE) expect(called).not.toContain(name);
    }
    expect(paused).toEqual([true]);
    for (let minutes = 0; minutes < STEADY_AFTER_MS / 60_000 + 2; minutes += 1) await runRound();
    expect(paused).toEqual([true, false]);
    for (const name of BY_AGE) expect(await runRound()).toContain(name);
  },
);

test("a jump of the database's clock ends the deletions of the round in which it happens", async () => {
  const { runRound, onCall, jump } = createUpkeep();
  expect(await runRound()).toContain('deleteAuditEntries');
  onCall.set('deleteIdempotencyKeys', () => jump(40 * DAY_MS));
  const called = await runRound();
  expect(called).toContain('deleteIdempotencyKeys');
  expect(called).not.toContain('deleteStatistics');
  expect(called).not.toContain('deleteAuditEntries');
});
