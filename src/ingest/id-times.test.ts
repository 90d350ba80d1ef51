import { expect, test } from 'vitest';
import { firstIdAt, type Uuid } from '../domain/ids.ts';
import { findIdProblem as findProblem } from './id-times.ts';

const NOW = Date.UTC(2027, 0, 31);
const HOUR_MS = 3_600_000;
const findIdProblem = (id: Uuid, now: number) => findProblem({ id, outboxSeq: null }, now);
/** Not `newEventId`, whose ids only grow. */
const idAt = (ms: number): Uuid => `${firstIdAt(ms).slice(0, 14)}7abc-8abc-012345670000`;

test('a committed event must have an id that an event can have', () => {
  expect(findIdProblem(idAt(NOW), NOW)).toBeNull();
  expect(findIdProblem(idAt(NOW + HOUR_MS / 2), NOW)).toBeNull();
  expect(findIdProblem(idAt(NOW - 5 * 365 * 24 * HOUR_MS), NOW)).toBeNull();
  const version8 = `${firstIdAt(NOW).slice(0, 14)}8abc-8abc-012345600000`;
  expect(findIdProblem(version8, NOW)).toBeNull();
  expect(findIdProblem(version8.replace(/.{5}$/, '10000'), NOW)).toMatchObject({ code: 'invalid' });
  // The last 16 bits number the deliveries.
  expect(findIdProblem(idAt(NOW).replace(/.{4}$/, 'abcd'), NOW)).toMatchObject({ code: 'invalid' });
  expect(findIdProblem('550e8400-e29b-41d4-a716-446655440000', NOW)).toMatchObject({ code: 'invalid' });
  expect(findIdProblem('', NOW)).toMatchObject({ code: 'invalid' });
});

test('the time in the id must be after 2020 and at most an hour ahead', () => {
  expect(findIdProblem(idAt(Date.UTC(2019, 11)), NOW)?.message).toContain('2019-12-01');
  expect(findIdProblem(idAt(NOW + 2 * HOUR_MS), NOW)?.message).toContain('too far ahead');
});

test("the id of an outbox row, or of an event in the accept log, may be 100 days ahead: the database's clock was wrong when it was made", () => {
  const days = (count: number) => idAt(NOW + count * 24 * HOUR_MS);
  expect(findProblem({ id: days(99), outboxSeq: '1' }, NOW)).toBeNull();
  expect(findProblem({ id: days(101), outboxSeq: '1' }, NOW)?.message).toContain('too far ahead');
  // The process that accepted it used the database's clock.
  const logged = { outboxSeq: null, isFromAcceptLog: true };
  expect(findProblem({ id: days(99), ...logged }, NOW)).toBeNull();
  expect(findProblem({ id: days(101), ...logged }, NOW)?.message).toContain('too far ahead');
  const parked = { outboxSeq: '1', record: { kind: 'parked' as const } };
  expect(findProblem({ id: days(1), ...parked }, NOW)?.message).toContain('too far ahead');
});
