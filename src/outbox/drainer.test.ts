import { expect, test } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import type { CommittedEvent } from '../domain/event.ts';
import { newEventId } from '../domain/ids.ts';
import { Problem } from '../domain/problem.ts';
import type { OutboxRow } from '../ports/outbox-store.ts';
import { StoreError } from '../ports/store-error.ts';
import { Drainer } from './drainer.ts';

const BATCH_ROWS = 4;

/** An outbox with the given types, whose sink answers rows of the type "bad" with an error. */
function newOutbox(types: readonly string[], error: Error) {
  let waiting: OutboxRow[] = types.map((type, index) => ({
    seq: String(index + 1),
    id: newEventId(Date.now()),
    tenant: 'acme',
    type,
    data: Buffer.from('1'),
    idempotencyKey: null,
    options: null,
  }));
  const calls: string[][] = [];
  const rejected: string[] = [];
  const remove = (seqs: readonly string[]): void => {
    waiting = waiting.filter(({ seq }) => !seqs.includes(seq));
  };
  const drainer = new Drainer({
    outbox: {
      read: async ({ maxRows }) => waiting.slice(0, maxRows),
      async reject(rows) {
        for (const { seq, reason } of rows) rejected.push(`${seq}: ${reason}`);
        remove(rows.map(({ seq }) => seq));
      },
    },
    sink: {
      async accept(events: readonly CommittedEvent[]) {
        calls.push(events.map(({ type }) => type));
        remove(events.flatMap(({ type, outboxSeq }) => (type === 'bad' ? [] : [outboxSeq!])));
        return events.map(({ type }) => (type === 'bad' ? error : {}));
      },
    },
    clock: systemClock,
    isLeader: () => true,
    pollMs: 20,
    standInMs: 1000,
    batchRows: BATCH_ROWS,
    batchBytes: 1000,
    onRejected() {},
    onHeld() {},
    onProblem() {},
  });
  return { drainer, calls, rejected, waiting: () => waiting.map(({ type }) => type) };
}

const unavailable = (failure: 'timeout' | 'unavailable') =>
  new Problem('unavailable', 'Not stored.', { cause: new StoreError(failure, 'cancelled') });

test('a row that times out alone lets the rows behind it pass, and is rejected with the reason after five tries', async () => {
  const outbox = newOutbox(['bad', 'a', 'b', 'c', 'd', 'e', 'f', 'g'], unavailable('timeout'));
  const hasMore: boolean[] = [];
  for (let n = 1; n <= 7; n += 1) hasMore.push(await outbox.drainer.runOnce());
  expect(outbox.calls).toEqual([
    ['bad', 'a', 'b', 'c'],
    ['d', 'e', 'f'],
    ['g'],
    ['bad'],
    ['bad'],
    ['bad'],
    ['bad'],
  ]);
  expect(hasMore).toEqual([true, true, false, false, false, false, false]);
  expect(outbox.rejected).toEqual(['1: Not stored. (cancelled)']);
});

test('a row is never rejected because the database cannot be reached', async () => {
  const outbox = newOutbox(['bad', 'bad'], unavailable('unavailable'));
  for (let n = 1; n <= 10; n += 1) expect(await outbox.drainer.runOnce()).toBe(false);
  expect(outbox.rejected).toEqual([]);
  expect(outbox.waiting()).toEqual(['bad', 'bad']);
});

test('the leader lets a row wait for a hundredth of the time since the last one, at most a hundred polls', async () => {
  let now = 0;
  let rows = 0;
  const pauses: number[] = [];
  let task: (() => void) | null = null;
  const drainer = new Drainer({
    outbox: {
      read: async () => {
        const found = rows;
        rows = 0;
        return Array.from({ length: found }, () => ({
          seq: '1',
          id: newEventId(Date.now()),
          tenant: 'acme',
          type: 'a',
          data: Buffer.from('1'),
          idempotencyKey: null,
          options: null,
        }));
      },
      reject: async () => {},
    },
    sink: { accept: async (events) => events.map(() => ({})) },
    clock: {
      now: () => now,
      monotonic: () => now,
      after: (delayMs, next) => {
        pauses.push(delayMs);
        task = next;
        return () => {};
      },
    },
    isLeader: () => true,
    pollMs: 20,
    standInMs: 1000,
    batchRows: BATCH_ROWS,
    batchBytes: 1000,
    onRejected() {},
    onHeld() {},
    onProblem() {},
  });
  const poll = async (found: number): Promise<number> => {
    rows = found;
    const before = pauses.length;
    task!();
    await expect.poll(() => pauses.length).toBe(before + 1);
    return pauses.at(-1)!;
  };
  drainer.start();
  expect(await poll(0)).toBe(20);
  now += 10_000;
  expect(await poll(0)).toBe(100);
  now += 3_600_000;
  expect(await poll(0)).toBe(2_000);
  expect(await poll(1)).toBe(20);
  now += 2_000;
  expect(await poll(0)).toBe(20);
  now += 1_000;
  expect(await poll(0)).toBe(30);
  // A row got a number: the leader reads now, and often while its transaction may be open.
  now += 3_600_000;
  expect(await poll(0)).toBe(2_000);
  drainer.onSeq(7);
  expect(pauses.at(-1)).toBe(0);
  expect(await poll(0)).toBe(20);
  now += 10_000;
  drainer.onSeq(7);
  expect(await poll(0)).toBe(100);
  await drainer.stop();
});

test('rows of a tenant at its limit stay in order and are not counted as failures, and the rows of others pass', async () => {
  let now = 0;
  let isAtLimit = true;
  const held: string[] = [];
  let waiting: OutboxRow[] = ['big', 'big', 'big', 'big', 'big', 'a', 'b'].map((tenant, index) => ({
    seq: String(index + 1),
    id: newEventId(Date.now()),
    tenant,
    type: 'a.b',
    data: Buffer.from('1'),
    idempotencyKey: null,
    options: null,
  }));
  const stored: string[] = [];
  const drainer = new Drainer({
    outbox: {
      read: async ({ maxRows, exceptTenants = [] }) =>
        waiting.filter(({ tenant }) => !exceptTenants.includes(tenant)).slice(0, maxRows),
      reject: () => Promise.reject(new Error('nothing is rejected')),
    },
    sink: {
      async accept(events: readonly CommittedEvent[]) {
        const isHeld = ({ tenant }: CommittedEvent) => tenant === 'big' && isAtLimit;
        const taken = events.filter((event) => !isHeld(event)).map(({ outboxSeq }) => outboxSeq!);
        stored.push(...taken);
        waiting = waiting.filter(({ seq }) => !taken.includes(seq));
        return events.map((event) => (isHeld(event) ? new Problem('rate_limited', 'At its limit.') : {}));
      },
    },
    clock: { ...systemClock, monotonic: () => now },
    isLeader: () => true,
    pollMs: 20,
    standInMs: 1000,
    batchRows: BATCH_ROWS,
    batchBytes: 1000,
    onRejected() {},
    onHeld: (tenant, reason) => held.push(`${tenant}: ${reason}`),
    onProblem() {},
  });
  for (let n = 0; n < 10; n += 1) {
    await drainer.runOnce();
    now += 600;
  }
  expect(stored).toEqual(['6', '7']);
  expect(held).toEqual(['big: At its limit.']);
  isAtLimit = false;
  now += 60_000;
  for (let n = 0; n < 3; n += 1) await drainer.runOnce();
  expect(stored).toEqual(['6', '7', '1', '2', '3', '4', '5']);
});
