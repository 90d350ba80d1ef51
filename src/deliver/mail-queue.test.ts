import { expect, it } from 'vitest';
import { MailQueue, type QueuedMail } from './mail-queue.ts';

function newQueue(limits = {}) {
  const queue = new MailQueue({ connections: 3, waitingPerTenant: 4, waiting: 6, ...limits });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const add = (tenant: string | null, name: string): QueuedMail | null =>
    queue.add(tenant, () => {
      started.push(name);
      return new Promise<void>((resolve) => ends.set(name, resolve));
    });
  const end = async (name: string): Promise<void> => {
    ends.get(name)!();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { add, end, started };
}

it('OBS-4: tenants take turns, however many messages one of them has', async () => {
  const { add, end, started } = newQueue();
  for (const name of ['a1', 'a2', 'a3']) add('a', name);
  add('b', 'b1');
  add('c', 'c1');
  expect(started).toEqual(['a1', 'b1']);
  await end('a1');
  expect(started).toEqual(['a1', 'b1', 'c1']);
  await end('b1');
  await end('a2');
  expect(started).toEqual(['a1', 'b1', 'c1', 'a2', 'a3']);
});

it('OBS-4: a connection is free for the operator, whose messages go first', async () => {
  const { add, end, started } = newQueue();
  for (const tenant of ['a', 'b', 'c']) add(tenant, tenant);
  expect(started).toEqual(['a', 'b']);
  for (const name of ['o1', 'o2']) add(null, name);
  expect(started).toEqual(['a', 'b', 'o1']);
  await end('a');
  expect(started).toEqual(['a', 'b', 'o1', 'o2']);
});

it('OBS-4: the queue is bounded for a tenant and for all tenants, but not for the operator', () => {
  const { add } = newQueue();
  const addAll = (tenant: string | null, count: number) =>
    Array.from({ length: count }, (_, n) => add(tenant, `${tenant}${n}`)).filter((each) => each !== null)
      .length;
  // One is sent, four wait.
  expect(addAll('a', 9)).toBe(5);
  expect(addAll('b', 9)).toBe(3);
  expect(addAll('c', 9)).toBe(0);
  expect(addAll(null, 9)).toBe(5);
});

it('OBS-4: a message that has left the queue is never sent, and makes room', async () => {
  const { add, end, started } = newQueue({ waitingPerTenant: 1 });
  const first = add('a', 'a1')!;
  const second = add('a', 'a2')!;
  expect(add('a', 'a3')).toBeNull();
  expect([first.withdraw(), second.withdraw(), second.withdraw()]).toEqual([false, true, false]);
  expect(add('a', 'a4')).not.toBeNull();
  await end('a1');
  expect(started).toEqual(['a1', 'a4']);
});
