import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../domain/clock.ts';
import { firstIdAt, newId, timeOfId, type Uuid } from '../domain/ids.ts';
import type { RowExpirer } from '../ports/retention-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { expireRows } from './expire-rows.ts';

const days = { events: 90, payloads: 30, deadLetters: 10 };

/** Runs a round and returns the calls and the problems. */
async function run(
  store: Partial<RowExpirer>,
  clock: Clock = systemClock,
  tenantPositions = new Map<string, Uuid>(),
): Promise<string[]> {
  const log: string[] = [];
  await expireRows(
    {
      store: {
        expireDeadLetters: async () => ({ count: 0, endpointIds: [] }),
        stripPayloads: async () => false,
        listTenantRetentions: async () => [],
        deleteTenantEvents: async (tenant, _cutoffMs, _after, max) => {
          log.push(`${tenant} ${max}`);
          return null;
        },
        ...store,
      },
      clock,
      days,
      tenantPositions,
      onDeadLettersExpired: () => {},
      onProblem: (what) => void log.push(what),
    },
    () => false,
  );
  return log;
}

test('LIF-1: a kind of data that cannot be deleted does not stop the others', async () => {
  const fail = () => Promise.reject(new Error('no'));
  expect(
    await run({
      expireDeadLetters: fail,
      stripPayloads: fail,
      listTenantRetentions: async () => [{ tenant: 'acme', days: 7 }],
    }),
  ).toEqual(['discard expired dead letters', 'delete expired payloads', 'acme 500']);
});

test('LIF-1: a round deletes payloads for most of a minute, and rests as long as it works', async () => {
  let time = 0;
  const pauses: number[] = [];
  const clock: Clock = {
    now: () => Date.now(),
    monotonic: () => time,
    after(delayMs, task) {
      pauses.push(delayMs);
      time += delayMs;
      queueMicrotask(task);
      return () => {};
    },
  };
  let chunks = 0;
  const strip = async (left: number): Promise<number> => {
    chunks = 0;
    await run(
      {
        stripPayloads: async () => {
          chunks += 1;
          time += 10;
          return chunks < left;
        },
      },
      clock,
    );
    return chunks;
  };
  // Until nothing is left, or for 40 seconds.
  expect(await strip(1_000)).toBe(1_000);
  expect(await strip(10_000)).toBe(2_001);
  expect(new Set(pauses)).toEqual(new Set([10]));
});

test('LIF-1: a tenant whose events cannot be deleted does not stop the others', async () => {
  const deleted: string[] = [];
  const log = await run({
    listTenantRetentions: async () => ['broken', 'acme'].map((tenant) => ({ tenant, days: 7 })),
    deleteTenantEvents: async (tenant) => {
      if (tenant === 'broken') throw new Error('no');
      deleted.push(tenant);
      return null;
    },
  });
  expect(log).toEqual(['delete expired events of a tenant']);
  expect(deleted).toEqual(['acme']);
});

test('LIF-1: a chunk that times out is halved, and stays small', async () => {
  const sizes: number[] = [];
  const log = await run({
    listTenantRetentions: async () => [{ tenant: 'acme', days: 7 }],
    deleteTenantEvents: async (_tenant, _cutoffMs, after, max) => {
      sizes.push(max);
      if (max > 125) throw new StoreError('timeout', 'too slow');
      return after === null ? newId(Date.now()) : null;
    },
  });
  expect(log).toEqual([]);
  expect(sizes).toEqual([500, 250, 125, 125]);
});

test('LIF-1: a round continues where the last one ended, so that needed events do not hide expired ones', async () => {
  const CHUNKS = 450;
  const read: number[] = [];
  const positions = new Map<string, Uuid>();
  const runRound = () =>
    run(
      {
        listTenantRetentions: async () => [{ tenant: 'acme', days: 7 }],
        // All of its events are needed, so a chunk deletes nothing.
        deleteTenantEvents: async (_tenant, _cutoffMs, after) => {
          const chunk = after === null ? 0 : timeOfId(after);
          read.push(chunk);
          return chunk + 1 < CHUNKS ? firstIdAt(chunk + 1) : null;
        },
      },
      systemClock,
      positions,
    );
  for (let round = 0; round < 3; round += 1) await runRound();
  expect(read).toEqual(Array.from({ length: CHUNKS }, (_, chunk) => chunk));
  // Then from the start: dead letters that needed the events may have ended.
  await runRound();
  expect(read[CHUNKS]).toBe(0);
});
