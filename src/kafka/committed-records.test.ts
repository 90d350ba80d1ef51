import { expect, it } from 'vitest';
import { filterCommitted, type TransactionBatch } from './committed-records.ts';

const data = (firstOffset: bigint, producerId: bigint, isTransactional = true): TransactionBatch => ({
  firstOffset,
  producerId,
  attributes: isTransactional ? 0x10 : 0,
  records: [{ key: null }],
});
const marker = (firstOffset: bigint, producerId: bigint, type: 'abort' | 'commit'): TransactionBatch => ({
  firstOffset,
  producerId,
  attributes: 0x30,
  records: [{ key: Buffer.from([0, 0, 0, type === 'abort' ? 0 : 1]) }],
});
const offsets = (batches: readonly TransactionBatch[]): bigint[] =>
  batches.map(({ firstOffset }) => firstOffset);

it('SCL-2: leaves out aborted transactions and markers, and keeps the records of other producers between them', () => {
  const batches = [
    data(0n, 1n),
    data(1n, 2n),
    data(2n, -1n, false),
    marker(3n, 1n, 'abort'),
    data(4n, 1n),
    marker(5n, 1n, 'commit'),
    marker(6n, 2n, 'commit'),
    data(7n, 1n),
    marker(8n, 1n, 'abort'),
  ];
  const aborted = [
    { producerId: 1n, firstOffset: 7n },
    { producerId: 1n, firstOffset: 0n },
  ];
  expect(offsets(filterCommitted(batches, aborted))).toEqual([1n, 2n, 4n]);
});

it('SCL-2: leaves out aborted records whose marker is not in the same answer', () => {
  const aborted = [{ producerId: 1n, firstOffset: 0n }];
  expect(offsets(filterCommitted([data(0n, 1n), data(1n, 2n), data(2n, 1n)], aborted))).toEqual([1n]);
});

it('SCL-2: leaves out the rest of an aborted transaction that began before the answer', () => {
  const aborted = [{ producerId: 1n, firstOffset: 3n }];
  expect(offsets(filterCommitted([data(9n, 1n), marker(10n, 1n, 'abort'), data(11n, 1n)], aborted))).toEqual([
    11n,
  ]);
});
