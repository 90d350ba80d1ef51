import { expect, it } from 'vitest';
import { TenantTurns } from './tenant-turns.ts';

it('VER-2: tenants take turns, within a limit for each and one for all', () => {
  const turns = new TenantTurns<{ tenant: string; n: number }>({ maxItems: 5, maxItemsPerTenant: 3 });
  const added = ['a', 'a', 'a', 'a', 'b', 'c', 'd'].map((tenant, n) => turns.add({ tenant, n }));
  expect(added).toEqual([true, true, true, false, true, true, false]);
  const taken: string[] = [];
  for (let item = turns.take(() => true); item !== null; item = turns.take(() => true))
    taken.push(`${item.tenant}${item.n}`);
  expect(taken).toEqual(['a0', 'b4', 'c5', 'a1', 'a2']);
  turns.add({ tenant: 'a', n: 7 });
  expect(turns.take((tenant) => tenant !== 'a')).toBeNull();
  expect(turns.clear()).toEqual([{ tenant: 'a', n: 7 }]);
  expect(turns.size).toBe(0);
});
