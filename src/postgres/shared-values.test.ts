import { expect, test } from 'vitest';
import { SharedValues } from './shared-values.ts';

test('equal lists become one object, different ones never do, and their number is bounded', () => {
  const shared = new SharedValues(2);
  const first = shared.shareList(['order.*', 'b']);
  expect(shared.shareList(['order.*', 'b'])).toBe(first);
  expect(shared.shareList(['order.*,b'])).toEqual(['order.*,b']);
  const [third, again] = [shared.shareList(['c']), shared.shareList(['c'])];
  expect(third).toEqual(again);
  expect(third).not.toBe(again);
});

test('long lists are not kept, so that a tenant cannot fill the memory with them', () => {
  const shared = new SharedValues();
  const many = Array.from({ length: 500 }, (_, n) => `type.${n}`);
  const long = Array.from({ length: 10 }, (_, n) => `${n}`.padStart(128, 'x'));
  for (const list of [many, long]) {
    expect(shared.shareList(list)).toBe(list);
    expect(shared.shareList([...list])).not.toBe(list);
  }
});
