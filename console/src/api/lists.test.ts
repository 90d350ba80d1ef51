import { describe, expect, it } from 'vitest';
import { merge } from './pages.ts';
import { parse } from './stream.ts';

const rows = (...ids: string[]) => ids.map((id) => ({ id }));
const idOf = ({ id }: { id: string }) => id;

describe('a fresh first page', () => {
  it('goes before what was loaded below it', () => {
    const before = { path: '/x', rows: rows('d', 'c', 'b', 'a'), cursor: 'a' };
    const merged = merge(before, { data: rows('e', 'd', 'c'), next_cursor: 'c' }, idOf);
    expect(merged).toEqual({ path: '/x', rows: rows('e', 'd', 'c', 'b', 'a'), cursor: 'a' });
  });

  it('replaces everything if the two do not touch: a gap would be worse than loading again', () => {
    const before = { path: '/x', rows: rows('b', 'a'), cursor: 'a' };
    const merged = merge(before, { data: rows('z', 'y'), next_cursor: 'y' }, idOf);
    expect(merged).toEqual({ path: '/x', rows: rows('z', 'y'), cursor: 'y' });
  });

  it('replaces everything if it is the whole list', () => {
    const before = { path: '/x', rows: rows('b', 'a'), cursor: null };
    expect(merge(before, { data: rows('b'), next_cursor: null }, idOf).rows).toEqual(rows('b'));
    expect(merge(before, { data: [], next_cursor: null }, idOf).rows).toEqual([]);
  });
});

describe('a message of the stream', () => {
  it.each([
    ['event: attempt\ndata: {"number":1}', { event: 'attempt', data: { number: 1 } }],
    ['data: {"a":\ndata: 1}', { event: 'message', data: { a: 1 } }],
    [': heartbeat', null],
    ['event: attempt\ndata: {broken', null],
  ])('%j', (block, message) => {
    expect(parse(block)).toEqual(message);
  });
});
