import { expect, test } from 'vitest';
import { tenantsNamedIn } from './operational-tenants.ts';

const namesIn = (payload: unknown) => tenantsNamedIn(Buffer.from(JSON.stringify(payload)));

test('LIF-3: finds the tenants that operational events and messages to notifiers name', () => {
  expect(namesIn({ tenant: 'a', endpoint: { metadata: { tenant: 'x' } } })).toEqual(['a']);
  expect(namesIn({ oldest: { tenant: 'a' } })).toEqual(['a']);
  expect(namesIn({ oldest: null, groups: [{ items: [{ tenant: null }, { tenant: 'a' }] }, {}] })).toEqual([
    'a',
  ]);
  expect(namesIn({ endpoints: [{ tenant: 'a' }, { tenant: 'b' }] })).toEqual(['a', 'b']);
  for (const other of [null, [], 'a', { groups: {}, endpoints: 'a' }]) expect(namesIn(other)).toEqual([]);
  expect(tenantsNamedIn(Buffer.from('{'))).toEqual([]);
});
