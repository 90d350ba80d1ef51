import { expect, test, vi } from 'vitest';
import { BulkPath } from './bulk-path.ts';
import { CommitPace } from './commit-pace.ts';
import type { PendingEvent } from './pending-event.ts';

/** Events are numbered over all tenants. */
function newBulkPath(maxBytes = 1_000_000) {
  const commits: string[][] = [];
  const commit = { isHeld: Promise.resolve(), ms: 0, deliveries: 0, sharedBatches: 0 };
  const pauses: number[] = [];
  let now = 0;
  const clock = {
    monotonic: () => now,
    after(ms: number, resolve: () => void) {
      pauses.push(ms);
      const timer = setImmediate(resolve);
      return () => clearImmediate(timer);
    },
  };
  const pace = new CommitPace({ clock, factor: 1 });
  const widePace = new CommitPace({ clock, factor: 1 });
  const bulk = new BulkPath({
    clock,
    pace,
    widePace,
    maxItems: 500,
    maxBytes,
    bytesOf: ({ event }) => event.data.length,
    writeFirst: async (batch, onAppended) => {
      await commit.isHeld;
      now += commit.ms;
      if (commit.sharedBatches > 0) for (const each of [pace, widePace]) each.onSharedBatch();
      onAppended(commit.deliveries);
      commits.push(batch.map(({ id }) => id));
      return [];
    },
  });
  let count = 0;
  const pending = (tenant: string, events: number, bytes = 1): PendingEvent[] =>
    Array.from({ length: events }, () => {
      count += 1;
      return { id: `${tenant} ${count}`, event: { tenant, data: Buffer.alloc(bytes) }, receivedAt: 0 };
    }) as unknown as PendingEvent[];
  return { bulk, commits, commit, pauses, pending, widePace };
}

test('a tenant with few events shares commits with others', () => {
  const { bulk, pending } = newBulkPath();
  const batch = [...pending('acme', 100), ...pending('umbrella', 100)];
  expect(bulk.divert(batch)).toBe(batch);
});

test.each([
  ['more than 100 events', 101, 1],
  ['more than 512 KiB', 3, 200_000],
])('a tenant with %s in a batch is written apart from the others', async (_title, events, bytes) => {
  const { bulk, commits, pending } = newBulkPath();
  const [many, few] = [pending('many', events, bytes), pending('few', 2)];
  expect(bulk.divert([...few.slice(0, 1), ...many, ...few.slice(1)])).toEqual(few);
  await bulk.waitUntilIdle();
  expect(commits).toEqual([many.map(({ id }) => id)]);
  expect([bulk.waitingItems, bulk.waitingBytes]).toEqual([0, 0]);
});

test('events that a tenant publishes while it is on the bulk path are written after its earlier ones', async () => {
  const { bulk, commits, commit, pending } = newBulkPath();
  const gate = Promise.withResolvers<void>();
  commit.isHeld = gate.promise;
  const first = pending('many', 101);
  expect(bulk.divert(first)).toEqual([]);
  const next = pending('many', 1);
  expect(bulk.divert(next)).toEqual([]);
  gate.resolve();
  await bulk.waitUntilIdle();
  expect(commits).toEqual([first.map(({ id }) => id), next.map(({ id }) => id)]);
  const later = pending('many', 1);
  expect(bulk.divert(later)).toBe(later);
});

test('a commit has a limit of bytes, and a larger event a commit of its own', async () => {
  const { bulk, commits, pending } = newBulkPath(1_000);
  const events = [...pending('many', 1, 2_000), ...pending('many', 3, 400)];
  bulk.add(events);
  await bulk.waitUntilIdle();
  expect(commits.map((ids) => ids.length)).toEqual([1, 2, 1]);
});

test.each([
  ['pauses after a large fan-out while others publish, for as long as the commit took', true, 1, [40]],
  ['does not pause after a large fan-out if nobody else publishes', true, 0, []],
  ['pauses after many events while others publish, for as long as the commit took', false, 1, [40]],
  ['does not pause after many events if nobody else publishes', false, 0, []],
])('%s', async (_title, isWide, sharedBatches, expected) => {
  const { bulk, commit, pauses, pending } = newBulkPath();
  Object.assign(commit, { ms: 40, sharedBatches });
  bulk.add(pending('many', 50), isWide);
  await bulk.waitUntilIdle();
  expect(pauses).toEqual(expected);
});

test('a tenant with many events does not wait for the pauses of large fan-outs', async () => {
  const { bulk, commits, pending, widePace } = newBulkPath();
  const endTurn = widePace.tryBegin()!;
  const [wide, many] = [pending('wide', 1), pending('many', 101)];
  bulk.add(wide, true);
  await new Promise((resolve) => setImmediate(resolve));
  expect(commits).toEqual([]);
  bulk.add(many);
  await vi.waitFor(() => expect(commits).toEqual([many.map(({ id }) => id)]));
  endTurn();
  await bulk.waitUntilIdle();
  expect(commits.at(-1)).toEqual(wide.map(({ id }) => id));
});

test('a tenant whose events turn out to have many deliveries waits for the pauses of large fan-outs', async () => {
  const { bulk, commit, commits, pending, widePace } = newBulkPath();
  Object.assign(commit, { deliveries: 10_000 });
  const endTurn = widePace.tryBegin()!;
  bulk.add(pending('wide', 501));
  await vi.waitFor(() => expect(commits).toHaveLength(1));
  const few = pending('few', 1);
  bulk.add(few);
  await vi.waitFor(() => expect(commits.at(-1)).toEqual(few.map(({ id }) => id)));
  endTurn();
  await bulk.waitUntilIdle();
  expect(commits.map((ids) => ids.length)).toEqual([500, 1, 1]);
});
