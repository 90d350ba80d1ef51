import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPath, readStep, resolvePin, type TypeVersion, versionOfEvent } from './version-pins.ts';

const version = (name: string, more: Partial<TypeVersion> = {}): TypeVersion => ({
  name,
  status: 'active',
  createdAt: 0,
  deprecatedAt: null,
  sunsetAt: null,
  ...more,
});

describe('VER-2: the version that a pin stands for', () => {
  const versions = [version('2025-10-01'), version('v2'), version('2026-04-01')];
  it.each<[string, string | null, string]>([
    ['2025-10-01', '2025-10-01', 'the version of that name'],
    ['v2', 'v2', 'a version that is no date'],
    ['2026-03-31', '2025-10-01', 'the newest date that is not after the pin'],
    ['2030-01-01', '2026-04-01', 'the newest of all for a pin in the future'],
    ['2025-09-30', null, 'none if all dates are after the pin'],
    ['v1', null, 'none for a name that the type does not have'],
    ['2026', null, 'none for a pin that is neither'],
  ])('%s → %s: %s', (pin, expected) => {
    expect(resolvePin(versions, pin)?.name ?? null).toBe(expected);
  });

  it('a date stands for a draft only by its name', () => {
    const drafted = [version('2025-10-01'), version('2026-04-01', { status: 'draft' })];
    expect(resolvePin(drafted, '2026-05-01')?.name).toBe('2025-10-01');
    expect(resolvePin(drafted, '2026-04-01')?.name).toBe('2026-04-01');
  });
});

describe('VER-2: the version that an event was written in', () => {
  const versions = [
    version('2025-10-01', { createdAt: 100, status: 'deprecated' }),
    version('2026-04-01', { createdAt: 200 }),
    version('2026-05-01', { createdAt: 300 }),
    version('2026-06-01', { createdAt: 400, status: 'draft' }),
  ];
  it.each<[string | null, number, string | null, string]>([
    ['2025-10-01', 500, '2025-10-01', 'the one that the producer named'],
    ['v9', 500, null, 'none if the producer named one that does not exist'],
    [null, 500, '2026-05-01', 'otherwise the newest active one'],
    [null, 250, '2026-04-01', 'as it was when the event was accepted'],
    [null, 150, '2025-10-01', 'a deprecated one if no active one existed yet'],
    [null, 50, '2025-10-01', 'the first one for an event that is older than the versions'],
  ])('schema_version %s, accepted at %s → %s: %s', (named, at, expected) => {
    expect(versionOfEvent(versions, named, at)?.name ?? null).toBe(expected);
  });
});

describe('VER-2: the chain of converters', () => {
  const steps = ['5→4', '4->3', '3→2', '2→1', '5→3', '1→2', '4→1'].map((text) => readStep(text)!);
  const path = (from: string, to: string) => findPath(steps, from, to)?.map(({ to }) => to);

  it('is the shortest one, downwards and upwards, and of two equal ones the first', () => {
    expect(path('5', '3')).toEqual(['3']);
    expect(path('5', '1')).toEqual(['4', '1']);
    expect(path('4', '2')).toEqual(['3', '2']);
    expect(path('1', '2')).toEqual(['2']);
    expect(path('3', '3')).toEqual([]);
    expect(findPath(steps, '1', '5')).toBeNull();
  });

  it('ends in any graph, with loops too, and is a connected chain', () => {
    const node = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    fc.assert(
      fc.property(fc.array(fc.record({ from: node, to: node })), node, node, (graph, from, to) => {
        const found = findPath(graph, from, to);
        let at: string = from;
        for (const step of found ?? []) {
          expect(step.from).toBe(at);
          at = step.to;
        }
        if (found !== null) expect(at).toBe(to);
        expect(found?.length ?? 0).toBeLessThan(5);
      }),
    );
  });

  it.each(['2026-04-01', '→', 'a→', '→b', 'a→a', 'a b→c', ''])('"%s" is not a step', (text) => {
    expect(readStep(text)).toBeNull();
  });
});
