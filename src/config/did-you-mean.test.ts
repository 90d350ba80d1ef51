import { describe, expect, it } from 'vitest';
import { didYouMean, editDistance } from './did-you-mean.ts';

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['', 'abc', 3],
    ['abc', '', 3],
    ['abc', 'abc', 0],
    ['kitten', 'sitting', 3],
    ['prot', 'port', 1],
    ['heartbeet', 'heartbeat', 1],
    ['ab', 'ba', 1],
  ])('%j to %j is %i', (from, to, expected) => {
    expect(editDistance(from, to)).toBe(expected);
    expect(editDistance(to, from)).toBe(expected);
  });
});

describe('didYouMean', () => {
  const known = ['port', 'host', 'log-level', 'log-format'];
  it('suggests the nearest name', () => {
    expect(didYouMean('prot', known)).toBe('port');
    expect(didYouMean('loglevel', known)).toBe('log-level');
    expect(didYouMean('LOG-LEVEL', known)).toBe('log-level');
  });
  it('suggests nothing if no name is near', () => {
    expect(didYouMean('database', known)).toBeNull();
    expect(didYouMean('x', [])).toBeNull();
  });
});
