import { describe, expect, it } from 'vitest';
import { ConverterSet } from './converter-set.ts';

const setOf = (...declared: [type: string, key: string, isFunction?: boolean][]): ConverterSet =>
  new ConverterSet('file:///posthorn.config.ts', {
    declared: declared.map(([type, key, isFunction = true]) => ({ type, key, isFunction })),
    modules: [],
    hash: 'ab',
  });

describe('VER-2: the converters of a configuration', () => {
  it('form chains per event type, and both arrows mean the same', () => {
    const set = setOf(['a', '3→2'], ['a', '2 -> 1'], ['b', '3->1']);
    const path = set.findPath('a', '3', '1')!;
    expect(set.keysOf('a', path)).toEqual(['3→2', '2 -> 1']);
    expect(set.findPath('b', '3', '2')).toBeNull();
    expect(set.findPath('c', '3', '2')).toBeNull();
    expect(set.size).toBe(3);
  });

  it('are refused with everything that is wrong with them', () => {
    const create = () =>
      setOf(['order created', '2→1'], ['a', 'newest'], ['a', '2→1', false], ['b', '2→1'], ['b', '2->1']);
    expect(create).toThrow(
      '"order created" in converters is not an event type; ' +
        "converters['a']['newest'] must be named by two versions, such as \"2026-04-01→2025-10-01\"; " +
        "converters['a']['2→1'] must be a function; converters['b']['2->1'] is there twice, with → and ->",
    );
  });
});
