import { expect, it } from 'vitest';
import { createMemoryDeliveryQueue } from './memory-delivery-queue.ts';
import { createMemoryEventStore } from './memory-event-store.ts';
import { MemoryStore } from './memory-store.ts';

it('can make a commit visible after a later one that has a higher acceptance number', async () => {
  let now = 1_800_000_000_000;
  const timers: (() => void)[] = [];
  const clock = {
    now: () => now,
    after: (_delayMs: number, task: () => void) => {
      timers.push(task);
      return () => {};
    },
  };
  const delays = [500, 0];
  const store = new MemoryStore({ clock, commitDelayMs: () => delays.shift() ?? 0 });
  const eventStore = createMemoryEventStore(store);
  const endpointId = '0190aaaa-0000-7000-8000-000000000001';
  const append = (id: string) =>
    eventStore.append(
      [
        {
          id,
          tenant: 't',
          type: 'x',
          data: Buffer.from('1'),
          idempotencyKey: null,
          fingerprint: null,
          options: null,
          deliveries: [{ id, endpointId, dueAt: null, fifo: false }],
          skipped: [],
        },
      ],
      { endpointVersion: store.endpointVersion, mayBeStored: false, idempotencyTtlMs: 0, outboxSeqs: null },
    );
  const time = now.toString(16).padStart(12, '0');
  const idOf = (n: number): string => `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-00000000000${n}`;
  const slow = append(idOf(1));
  await append(idOf(2));
  const queue = createMemoryDeliveryQueue(store);
  const load = async () =>
    (await queue.loadLanes([{ endpointId, freshAfter: 0, dueFrom: null, limit: 9 }]))
      .get(endpointId)!
      .fresh.map(({ id, seq }) => [id, seq]);
  expect(store.lastSeq).toBe(2);
  expect(await load()).toEqual([[idOf(2), 2]]);
  now += 500;
  for (const fire of timers) fire();
  await slow;
  expect(await load()).toEqual([
    [idOf(1), 1],
    [idOf(2), 2],
  ]);
});
