import { expect, test } from 'vitest';
import type { Problem } from '../domain/problem.ts';
import type { KeyHolder } from '../ports/event-store.ts';
import { FanOutLimit } from './fan-out-limit.ts';
import type { PendingEvent } from './pending-event.ts';

/** Tenants with 1,000 unwritten deliveries for each letter of their name. */
const limit = new FanOutLimit({
  fanOuts: { countSlices: async (tenant, max) => Math.min(max, tenant.length) },
  eventStore: {
    findKeyHolders: async (keys) => new Map(keys[0]!.key === 'known' ? [['', {} as KeyHolder]] : []),
  },
  deliveriesPerCommit: 2_000,
  sliceRows: 1_000,
  maxUnwritten: 3_000,
});

function pending(
  tenant: string,
  outboxSeq?: string | null,
  idempotencyKey: string | null = null,
): PendingEvent & { readonly problems: Problem[] } {
  const problems: Problem[] = [];
  const committed = outboxSeq === undefined ? null : { outboxSeq };
  return {
    event: { tenant, idempotencyKey },
    committed,
    problems,
    reject: (problem: Problem) => problems.push(problem),
  } as unknown as PendingEvent & { readonly problems: Problem[] };
}

test('a tenant below the limit may have a large fan-out of any size, and a small one always', async () => {
  expect(await limit.refuseFirst([pending('ab')], 1_000_000, false)).toBeNull();
  expect(await limit.refuseFirst([pending('abc')], 2_000, false)).toBeNull();
});

test('at the limit a request is refused alone, and says why', async () => {
  const [first, second, other] = [pending('abc'), pending('abc'), pending('x')];
  expect(await limit.refuseFirst([first, second, other], 2_001, false)).toEqual([second, other]);
  expect(first.problems).toMatchObject([
    {
      code: 'rate_limited',
      message: expect.stringContaining('"abc" has 3000 or more deliveries of large fan-outs'),
    },
  ]);
});

test('at the limit a row of the outbox is refused with the later rows of its tenant, so that they keep their order', async () => {
  const batch = [pending('abc', '1'), pending('x', '2'), pending('abc', '3')];
  expect(await limit.refuseFirst(batch, 2_001, true)).toEqual([batch[1]]);
  expect(batch.map(({ problems }) => problems.length)).toEqual([1, 0, 1]);
});

test('a request that repeats the key of a stored event gets its first answer, also at the limit', async () => {
  expect(await limit.refuseFirst([pending('abc', undefined, 'known')], 2_001, false)).toBeNull();
  expect(await limit.refuseFirst([pending('abc', undefined, 'new')], 2_001, false)).toEqual([]);
});

test('rows of a relay, and requests that may be stored already, are not refused', async () => {
  expect(await limit.refuseFirst([pending('abc', null)], 2_001, true)).toBeNull();
  expect(await limit.refuseFirst([pending('abc')], 2_001, true)).toBeNull();
});
