/**
 * Payloads of the largest size with as many values as possible, which once blocked the process: their keys for debounce took
 * 150 ms each, and the check for text that PostgreSQL cannot store 50 ms.
 */
import { describe, expect, it } from 'vitest';
import { readJson } from '../../src/api/http/read-json.ts';
import { DebounceKeys } from '../../src/domain/debounce.ts';
import type { Endpoint } from '../../src/domain/endpoint.ts';
import { toRecords } from '../../src/ingest/event-record.ts';
import { expectJson } from '../../src/ingest/index.ts';
import type { PendingEvent } from '../../src/ingest/pending-event.ts';
import type { EventRecord } from '../../src/ports/event-store.ts';

/** 250,000 bytes with 125,000 values and one number that JavaScript rounds. */
const MANY_VALUES = Buffer.from(`{"id":12345678901234567,"list":[${'1,'.repeat(125_000)}1]}`);
const RUNS = 5;

/** Processor time of `work` over that of `reference`, both of this process. The smallest of some measurements, because others use the machine. */
function ratioOf(work: () => unknown, reference: () => unknown): number {
  const measure = (run: () => unknown): number => {
    const { user, system } = process.cpuUsage();
    for (let n = 0; n < RUNS; n += 1) run();
    const used = process.cpuUsage({ user, system });
    return used.user + used.system;
  };
  return Math.min(...Array.from({ length: RUNS }, () => measure(work) / Math.max(1, measure(reference))));
}

const parse = (): unknown => JSON.parse(MANY_VALUES.toString());

describe('the key for debounce of an event with 125,000 values', () => {
  const keyOf = (path: string): string | null => new DebounceKeys(MANY_VALUES).keyOf({ key: path });

  it('takes a few times as long as parsing the event, although a number in it is long', () => {
    expect(keyOf('data.id')).toMatch(/^[\w-]{43}$/);
    expect(ratioOf(() => keyOf('data.id'), parse)).toBeLessThan(8);
  });

  it('is computed once for a hundred endpoints with the same path', () => {
    const hundred = (): void => {
      const keys = new DebounceKeys(MANY_VALUES);
      for (let n = 0; n < 100; n += 1) keys.keyOf({ key: 'data.list' });
    };
    expect(ratioOf(hundred, parse)).toBeLessThan(15);
  });

  it('is computed event by event, and others proceed meanwhile', async () => {
    const count = 8;
    const batch = Array.from({ length: count }, () => ({ event: { data: MANY_VALUES } }) as PendingEvent);
    const debounced = { debounce: { key: 'data.id' } } as Endpoint;
    let others = 0;
    let isDone = false;
    const countOthers = (): void => {
      others += 1;
      if (!isDone) setImmediate(countOthers);
    };
    setImmediate(countOthers);
    const made: number[] = [];
    await toRecords(
      batch,
      batch.map(() => [debounced]),
      () => {
        made.push(others);
        return {} as EventRecord;
      },
    );
    isDone = true;
    expect(made).toHaveLength(count);
    // Two events of 250,000 bytes are more than a turn.
    expect(new Set(made).size).toBeGreaterThanOrEqual(count / 2);
  });
});

it('checking the text of a body with 125,000 values takes no longer than parsing it', () => {
  const read = (): unknown => readJson(MANY_VALUES, 64);
  const parseAndScan = (): void => {
    expectJson(MANY_VALUES, 64);
    parse();
  };
  expect(ratioOf(read, parseAndScan)).toBeLessThan(2.5);
});
