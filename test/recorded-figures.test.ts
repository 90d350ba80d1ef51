import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { addRecordedLimits, readRecorded, record } from '../bench/recorded-figures.ts';
import { type Figure, isWithin } from '../bench/scenario.ts';

const EMPTY = 'Before.\n<!-- performance:cost -->\n<!-- /performance:cost -->\nAfter.';
const figures: Figure[] = [
  { name: 'events', value: 1234.4, unit: '/s' },
  { name: 'CPU over the bare loop', value: 5, unit: '×', better: 'lower', goal: { atMost: 6 } },
  { name: 'ratio', value: 0.6, unit: '×', better: 'higher', goal: { atLeast: 0.7 } },
];

it('writes figures into the document and reads them again', () => {
  const document = record(EMPTY, 'cost', figures, 'Measured today.');
  expect(document).toContain('| CPU over the bare loop | 5.00 × | ≤ 6 ✓ | ≤ 6 |');
  expect(document).toContain('| ratio | 0.60 × | ≥ 0.7 ✗ | ≥ 0.5 |');
  expect(document).toContain('Measured today.');
  expect(document).toMatch(/^Before.*After\.$/s);
  expect([...readRecorded(document, 'cost')]).toEqual([
    ['events', 1234],
    ['CPU over the bare loop', 5],
    ['ratio', 0.6],
  ]);
});

it('fails a figure that is more than 20 % worse than the recorded one, and no other', () => {
  const document = record(EMPTY, 'cost', figures, '');
  const check = (values: readonly number[]): boolean[] =>
    addRecordedLimits(
      document,
      'cost',
      figures.map((figure, index) => ({ ...figure, value: values[index]! })),
    ).map(({ value, limit }) => isWithin(value, limit));
  expect(check([1, 5.9, 0.51])).toEqual([true, true, true]);
  expect(check([1, 6.1, 0.49])).toEqual([true, false, false]);
  expect(check([1, 1, 1])).toEqual([true, true, true]);
});

it('keeps the limit that a figure has by itself, and compares nothing without a table', () => {
  const document = record(EMPTY, 'cost', figures, '');
  const own: Figure = { ...figures[1]!, limit: { atMost: 50 } };
  expect(addRecordedLimits(document, 'cost', [own])).toEqual([own]);
  expect(addRecordedLimits(document, 'throughput', figures)).toEqual(figures);
});

it('has a recorded value in docs/performance.md for every kind of cost', () => {
  const page = readFileSync(new URL('../docs/performance.md', import.meta.url), 'utf8');
  const names = [...readRecorded(page, 'cost').keys()];
  for (const name of ["2 clients: CPU over the bare loop's", 'disk per event', '200/s: p99 over p50'])
    expect(names).toContain(name);
});
