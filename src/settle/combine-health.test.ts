import { expect, test } from 'vitest';
import { CLOSED_BREAKER } from '../domain/breaker.ts';
import { combineHealth } from './combine-health.ts';

const full = { endpointId: 'e', breaker: CLOSED_BREAKER, failingSince: 5 };
const hold = (holdUntil: number) => ({ endpointId: 'e', breaker: null, failingSince: null, holdUntil });

test('a change of only the hold keeps the circuit of the earlier change, and the later hold wins', () => {
  expect(combineHealth({ ...full, holdUntil: 7 }, hold(9))).toEqual({ ...full, holdUntil: 9 });
  expect(combineHealth({ ...full, holdUntil: 9 }, hold(7))).toEqual({ ...full, holdUntil: 9 });
  expect(combineHealth(hold(9), full)).toEqual({ ...full, holdUntil: 9 });
  expect(combineHealth(hold(7), hold(9))).toEqual(hold(9));
});
