import { describe, expect, test } from 'vitest';
import { bucketOf } from '../domain/histogram.ts';
import { HOUR, MINUTE, QUARTER } from '../domain/statistics.ts';
import { JournalSums } from './journal-sums.ts';
import type { ReadableRow } from './read-journal.ts';

const NOON = 500_000 * 3_600_000;
const [DELIVERED, RETRY, DEAD, NONE] = [0, 1, 2, -1];
const asIs = (_tenant: string, _hour: number, type: string): string => type;

describe('adding up the statistics journal', () => {
  const rows: ReadableRow[] = [
    { at: NOON - 1, entry: { accepted: [['acme', 'a.b', 2]] } },
    {
      at: NOON - 1,
      entry: { attempts: [['one', 'acme', 'a.b', [RETRY, 1, bucketOf(20), NONE, DELIVERED, 12, 5, 9]]] },
    },
    { at: NOON, entry: { attempts: [['one', 'acme', 'c.d', [DEAD, 2, NONE, NONE]]] } },
    { at: NOON + 61_000, entry: { dead: [['other', 'umbrella', 'a.b', 3]] } },
  ];
  const sums = new JournalSums(asIs);
  sums.add(rows.slice(0, 3));
  sums.add(rows.slice(3));
  const buckets = sums.buckets();
  const [endpoints, events] = [[...buckets.endpoints], [...buckets.events]];
  const of = (list: readonly object[], part: object) => list.filter((row) => matches(row, part));
  const matches = (row: object, part: object) =>
    Object.entries(part).every(([name, value]) => Reflect.get(row, name) === value);

  test('makes totals of minutes, quarters of an hour and hours for an endpoint', () => {
    for (const seconds of [MINUTE, QUARTER, HOUR])
      expect(of(endpoints, { endpointId: 'one', seconds })).toMatchObject([
        {
          at: NOON - seconds * 1000,
          totals: {
            attempts: 2,
            firstTries: 1,
            successes: 1,
            failures: 1,
            retried: 1,
            delivered: 1,
            dead: 0,
          },
        },
        { at: NOON, totals: { attempts: 1, firstTries: 0, failures: 1, retried: 0, dead: 1, response: [] } },
      ]);
    const [before] = of(endpoints, { endpointId: 'one', seconds: HOUR }) as typeof endpoints;
    expect(before!.totals.tries).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    expect(before!.totals.response.flatMap((n, bucket) => (n > 0 ? [bucket] : []))).toEqual([
      5,
      bucketOf(20),
    ]);
    expect(before!.totals.delivery).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  });

  test('makes totals for a type of a tenant, a tenant, a type and everything', () => {
    const totals = (tenant: string, type: string) =>
      of(events, { tenant, type, seconds: HOUR }).map((row) => {
        const { accepted, attempts, dead } = (row as (typeof events)[number]).totals;
        return [accepted, attempts, dead];
      });
    expect(totals('acme', 'a.b')).toEqual([[2, 2, 0]]);
    expect(totals('acme', '')).toEqual([
      [2, 2, 0],
      [0, 1, 1],
    ]);
    expect(totals('', 'a.b')).toEqual([
      [2, 2, 0],
      [0, 0, 3],
    ]);
    expect(totals('', '')).toEqual([
      [2, 2, 0],
      [0, 1, 4],
    ]);
    expect(totals('umbrella', '')).toEqual([[0, 0, 3]]);
  });
});
