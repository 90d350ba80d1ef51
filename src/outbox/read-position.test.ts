import { expect, test } from 'vitest';
import { ReadPosition } from './read-position.ts';

const newPosition = () => new ReadPosition({ fastMs: 10, lookBackMs: 2_000 });

function record(
  position: ReadPosition,
  afterSeq: string,
  tookMs: number,
  lastSeq: string | null,
  now: number,
) {
  position.recordRead({ afterSeq, tookMs, lastSeq, now });
}

test('reads from the first row as long as that is fast', () => {
  const position = newPosition();
  expect(position.afterSeq(0)).toBe('0');
  record(position, '0', 9, '100', 9);
  expect(position.afterSeq(10_000)).toBe('0');
});

test('when reading from the first row is slow, most reads start at the position of two seconds ago', () => {
  const position = newPosition();
  record(position, '0', 5, '9', 0);
  record(position, '0', 5, '1000', 1_500);
  record(position, '0', 100, null, 2_000);
  expect(position.afterSeq(2_001)).toBe('9');
  record(position, '9', 1, '1010', 2_001);
  expect(position.afterSeq(3_499)).toBe('9');
  expect(position.afterSeq(3_500)).toBe('1000');
  expect(position.afterSeq(4_000)).toBe('0');
  record(position, '0', 4, null, 4_004);
  expect(position.afterSeq(4_005)).toBe('0');
});

test('reads from the first row while no position is two seconds old', () => {
  const position = newPosition();
  record(position, '0', 500, '77', 100);
  expect(position.afterSeq(101)).toBe('0');
});

test('positions are compared as numbers, and a row that committed late does not move the position back', () => {
  const position = newPosition();
  record(position, '0', 1, '9', 0);
  record(position, '0', 1, '10', 0);
  record(position, '0', 1_000, '3', 1);
  expect(position.afterSeq(3_000)).toBe('10');
});
