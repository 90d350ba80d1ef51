import { expect, test } from 'vitest';
import { CheckChoice } from './accept-events.ts';

test('after a change of endpoints, statements for a while use only the check that such changes cannot fail', () => {
  const choice = new CheckChoice();
  const both = ['nothing_changed', 'own_unchanged'];
  expect([choice.next(), choice.next()]).toEqual([both, both]);
  choice.onFailed('nothing_changed');
  choice.onFailed('own_unchanged');
  const next = Array.from({ length: 21 }, () => choice.next());
  expect(next.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => ['own_unchanged']));
  expect(next[20]).toEqual(both);
});
