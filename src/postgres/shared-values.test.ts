import { expect, test } from 'vitest';
import { SharedValues } from './shared-values.ts';

test('equal lists become one object, different ones never do, and their number is bounded', () => {
  const shared = new SharedValues(2);
  const first = shared.list(['order.*', 'b']);
  expect(shared.list(['order.*', 'b'])).toBe(first);
  expect(shared.list(['order.*,b'])).toEqual(['order.*,b']);
  const [third, again] = [shared.list(['c']), shared.list(['c'])];
  expect(third).toEqual(again);
  expect(third).not.toBe(again);
});
