import { describe, expect, it } from 'vitest';
import { mergeFirstPage } from './paged-list.ts';

const rows = (...ids: string[]) => ids.map((id) => ({ id }));
const getId = ({ id }: { id: string }) => id;

describe('mergeFirstPage', () => {
  it('puts the fresh page before the older rows', () => {
    const before = { path: '/x', rows: rows('d', 'c', 'b', 'a'), cursor: 'a' };
    const merged = mergeFirstPage(before, { data: rows('e', 'd', 'c'), next_cursor: 'c' }, getId);
    expect(merged).toEqual({ path: '/x', rows: rows('e', 'd', 'c', 'b', 'a'), cursor: 'a' });
  });

  it('drops the older rows if the fresh page does not overlap them', () => {
    const before = { path: '/x', rows: rows('b', 'a'), cursor: 'a' };
    const merged = mergeFirstPage(before, { data: rows('z', 'y'), next_cursor: 'y' }, getId);
    expect(merged).toEqual({ path: '/x', rows: rows('z', 'y'), cursor: 'y' });
  });

  it('drops the older rows if the fresh page is the whole list', () => {
    const before = { path: '/x', rows: rows('b', 'a'), cursor: null };
    expect(mergeFirstPage(before, { data: rows('b'), next_cursor: null }, getId).rows).toEqual(rows('b'));
    expect(mergeFirstPage(before, { data: [], next_cursor: null }, getId).rows).toEqual([]);
  });
});
