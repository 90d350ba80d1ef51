import { expect, test } from 'vitest';
import { nameActor } from './actor-name.ts';

test.each([
  [{ id: 'key_01', prefix: 'phk_9wLx4f' }, 'phk_9wLx4f…', true],
  [{ id: 'user:ann', prefix: 'Ann Example' }, 'Ann Example', false],
  [{ id: 'user:ann', prefix: null }, 'ann', false],
  [{ id: 'operator', prefix: null }, 'Operator', false],
  [{ id: 'posthorn', prefix: null }, 'Posthorn', false],
  [{ id: 'admin', prefix: null }, 'configured admin key', false],
])('%o is shown as %s', (actor, name, isKey) => {
  expect(nameActor(actor)).toEqual({ name, isKey });
});
