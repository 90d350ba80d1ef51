import { expect, test } from 'vitest';
import { HeldTenants } from './held-tenants.ts';

test('a tenant is skipped for a second, then offered again by a read from the first row only, and reported once a minute', () => {
  const reported: string[] = [];
  const held = new HeldTenants((tenant, reason) => reported.push(`${tenant}: ${reason}`));
  held.add('big', 'too much', 0);
  expect(held.startRead(900, true)).toEqual(['big']);
  // Newer rows of the tenant must not overtake the refused ones.
  expect(held.startRead(1_100, false)).toEqual(['big']);
  expect(held.startRead(1_200, true)).toEqual([]);
  expect(held.startRead(1_300, false)).toEqual([]);
  held.add('big', 'too much', 1_400);
  expect(held.startRead(1_500, true)).toEqual(['big']);
  expect(reported).toEqual(['big: too much']);
  held.add('big', 'still too much', 60_000);
  expect(reported).toEqual(['big: too much', 'big: still too much']);
});
