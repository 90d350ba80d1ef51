import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { RowExpirer } from '../ports/retention-store.ts';
import { expireRows } from './expire-rows.ts';

const days = { events: 90, payloads: 30, deadLetters: 10 };

/** Runs a round and returns the calls and the problems. */
async function run(store: Partial<RowExpirer>): Promise<string[]> {
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
      clock: systemClock,
      days,
      onDeadLettersExpired: () => {},
      onProblem: (what) => void log.push(what),
    },
    () => false,
  );
  return log;
}

test('LIF-1: what cannot be deleted does not stop the rest', async () => {
  const fail = () => Promise.reject(new Error('no'));
  expect(
    await run({
      expireDeadLetters: fail,
      stripPayloads: fail,
      listTenantRetentions: async () => [{ tenant: 'acme', days: 7 }],
    }),
  ).toEqual(['discard expired dead letters', 'delete expired payloads', 'acme 500']);
});
