import { expect, test } from 'vitest';
import { plan, type RegisteredEndpoint } from './chaos/endpoints.ts';
import { outOfOrder } from './chaos/order-verdict.ts';
import type { AcceptedEvent } from './chaos/producer.ts';
import type { Arrival } from './chaos/receivers.ts';
import { changedBatches, wronglyRejected } from './chaos/shaping-verdict.ts';
import { type Facts, lost, pairOf, takenForPoison } from './chaos/verdict.ts';

test('a chaos run fails if a delivery to a receiver that can answer is dead with reason worker_crash', () => {
  const dead = new Map([
    [pairOf('evt_1', 'mortal'), 'exhausted'],
    [pairOf('evt_2', 'plain-1'), 'worker_crash'],
  ]);
  expect(takenForPoison({ dead })).toMatchObject([{ event: 'evt_2', endpoint: 'plain-1' }]);
});

const accepted = (order: number): AcceptedEvent => ({
  id: `evt_${order}`,
  type: 'a.b',
  postedAt: 0,
  acceptedAt: 0,
  endpoints: ['fifo'],
  keyed: true,
  order,
});
const batch = (
  id: string,
  at: number,
  orders: readonly number[],
  { status = 200, failed = [] }: { status?: number; failed?: readonly number[] } = {},
): Arrival => ({
  endpoint: 'fifo',
  event: `bat_${id}`,
  events: orders.map((order) => `evt_${order}`),
  failed: failed.map((order) => `evt_${order}`),
  attempt: 1,
  at,
  endedAt: at + 1,
  status,
  open: 1,
});
const facts = (count: number, dead: ReadonlyMap<string, string> = new Map()) => ({
  accepted: Array.from({ length: count }, (_, index) => accepted(index + 1)),
  dead,
});
const complaintsOf = (count: number, arrivals: readonly Arrival[]) =>
  outOfOrder(facts(count), 'fifo', arrivals).map(({ about }) => about);

test('a chaos run accepts an event of a FIFO batch that is retried after the receiver has named it', () => {
  const arrivals = [
    batch('a', 1, [1, 2, 3], { status: 207, failed: [2] }),
    batch('b', 10, [2]),
    batch('c', 20, [4, 5]),
  ];
  expect(complaintsOf(5, arrivals)).toEqual([]);
});

test('a chaos run fails if a FIFO batch passes an event that is to be retried, or has its events in another order', () => {
  const passed = [
    batch('a', 1, [1, 2, 3], { status: 207, failed: [2] }),
    batch('c', 5, [4, 5]),
    batch('b', 10, [2]),
  ];
  expect(complaintsOf(5, passed)).toEqual([
    'fifo got number 4 (evt_4) 5 ms before number 2 (evt_2) was done',
    'fifo got number 5 (evt_5) 5 ms before number 2 (evt_2) was done',
  ]);
  expect(complaintsOf(2, [batch('a', 1, [2, 1])])).toEqual(['bat_a of fifo has its events out of order']);
});

test('a chaos run fails if an event dies with a batch that was rejected because of another one, or under a changed batch', () => {
  const endpoint: RegisteredEndpoint = {
    ...plan('fifo', { fifo: true, settings: { batch: {} } }),
    id: 'ep_1',
    uuid: '',
    shard: 0,
  };
  const arrivals = [
    batch('a', 1, [1, 2], { status: 422 }),
    batch('b', 5, [1], { status: 422 }),
    batch('a', 9, [2, 1], { status: 500 }),
  ];
  const dead = new Map([
    [pairOf('evt_1', 'fifo'), 'rejected'],
    [pairOf('evt_2', 'fifo'), 'rejected'],
  ]);
  const all = { ...facts(2, dead), endpoints: [endpoint], arrivals } as unknown as Facts;
  expect(wronglyRejected(all)).toMatchObject([{ event: 'evt_2' }]);
  expect(changedBatches(arrivals)).toMatchObject([{ at: 9 }]);
});

test('a chaos run counts an event that the receiver only named as failed as lost', () => {
  const arrivals = [batch('a', 1, [1, 2], { status: 207, failed: [2] })];
  const all = { ...facts(2), arrivals, debounced: new Map() } as unknown as Facts;
  expect(lost(all)).toMatchObject([{ event: 'evt_2' }]);
});
