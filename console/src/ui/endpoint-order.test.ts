import type { Endpoint } from '@posthorn/client';
import { expect, it } from 'vitest';
import { readSort, sortEndpoints } from './endpoint-order.ts';

const row = (name: string, state: string, success: number | null) => ({
  name,
  state,
  endpoint: { health: { success_rate: success } } as Endpoint,
});
const rows = [row('b', 'Healthy', 1), row('C', 'Circuit open', null), row('a', 'Failing', 0.5)];
const order = (sort: string) => sortEndpoints(rows, readSort(sort)).map(({ name }) => name);

it.each([
  ['', ['b', 'C', 'a']],
  ['nonsense', ['b', 'C', 'a']],
  ['name', ['a', 'b', 'C']],
  ['-name', ['C', 'b', 'a']],
  ['state', ['C', 'a', 'b']],
  ['success', ['a', 'b', 'C']],
  ['-success', ['b', 'a', 'C']],
])('sorted by "%s" the endpoints are %j', (sort, names) => expect(order(sort)).toEqual(names));
