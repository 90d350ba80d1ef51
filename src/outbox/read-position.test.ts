import { expect, test } from 'vitest';
import { ReadPosition } from './read-position.ts';

const newPosition = () => new ReadPosition({ cheapMs: 10, lookBackMs: 2_000 });

test('from the bottom, as long as that is cheap', () => {
  const position = newPosition();
  expect(position.afterSeq(0)).toBe('0');
  position.wasRead('0', 9, '100', 9);
  expect(position.afterSeq(10_000)).toBe('0');
});

test('when it is dear: from what was reached two seconds ago, and from the bottom for a twentieth of the time', () => {
  const position = newPosition();
  position.wasRead('0', 5, '9', 0);
  position.wasRead('0', 5, '1000', 1_500);
  position.wasRead('0', 100, null, 2_000);
  expect(position.afterSeq(2_001)).toBe('9');
  position.wasRead('9', 1, '1010', 2_001);
  expect(position.afterSeq(3_499)).toBe('9');
  expect(position.afterSeq(3_500)).toBe('1000');
  expect(position.afterSeq(4_000)).toBe('0');
  position.wasRead('0', 4, null, 4_004);
  expect(position.afterSeq(4_005)).toBe('0');
});

test('what is not known yet is read from the bottom', () => {
  const position = newPosition();
  position.wasRead('0', 500, '77', 100);
  expect(position.afterSeq(101)).toBe('0');
});

test('numbers are numbers, and a late one does not lead back', () => {
  const position = newPosition();
  position.wasRead('0', 1, '9', 0);
  position.wasRead('0', 1, '10', 0);
  position.wasRead('0', 1_000, '3', 1);
  expect(position.afterSeq(3_000)).toBe('10');
});
