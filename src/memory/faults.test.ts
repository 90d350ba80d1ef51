import { describe, expect, it } from 'vitest';
import { systemClock } from '../domain/clock.ts';
import { type Fault, Link, type LinkOptions, withFaults } from './faults.ts';

describe('a faulty link', () => {
  const createCounter = (fault: Fault) => {
    const calls: string[] = [];
    const port = {
      count: 0,
      async add(amount: number): Promise<number> {
        this.count += amount;
        return this.count;
      },
    };
    const link = new Link({
      storeClock: systemClock,
      processClock: systemClock,
      latencyMs: () => 2,
      fault: () => fault,
      onCall: (operation) => calls.push(operation),
    });
    return { port, faulty: withFaults(port, link), calls };
  };

  /** A call takes one millisecond per row, its first parameter. */
  const slowLink = (options: Partial<LinkOptions>) => ({
    link: new Link({
      storeClock: systemClock,
      processClock: systemClock,
      latencyMs: (_, [rows]) => rows as number,
      fault: () => 'none',
      ...options,
    }),
  });

  it('passes calls and answers through', async () => {
    const { port, faulty, calls } = createCounter('none');
    expect(await faulty.add(2)).toBe(2);
    expect([port.count, faulty.count, calls]).toEqual([2, 2, ['add']]);
  });

  it.each([
    ['lost_answer', 'outcome_unknown', 2],
    ['lost_request', 'outcome_unknown', 0],
    ['conflict', 'conflict', 0],
    ['invalid_row', 'invalid_row', 0],
  ] as const)('%s: the caller gets %s', async (fault, failure, count) => {
    const { port, faulty } = createCounter(fault);
    await expect(faulty.add(2)).rejects.toMatchObject({ name: 'StoreError', failure });
    expect(port.count).toBe(count);
  });

  it('refuses a call that takes longer than a statement may', async () => {
    const { link } = slowLink({ statementTimeoutMs: 3 });
    let effects = 0;
    const call = (rows: number) => link.call('add', async () => (effects += 1), [rows]);
    await expect(call(4)).rejects.toMatchObject({ failure: 'timeout' });
    expect(effects).toBe(0);
    await call(2);
    expect(effects).toBe(1);
  });

  it('refuses a call that waits for a lock, after a while', async () => {
    const { link } = slowLink({ lockWait: { timeoutMs: 3, isLocked: ([row]) => row === 7 } });
    await expect(link.call('add', async () => 1, [7])).rejects.toMatchObject({ failure: 'conflict' });
    expect(await link.call('add', async () => 1, [8])).toBe(1);
  });

  it('lets the effect happen even if the calling process has died', async () => {
    let done: () => void = () => {};
    const effect = new Promise<void>((resolve) => {
      done = resolve;
    });
    const dead = { after: () => () => {} };
    const options = { latencyMs: () => 2, fault: () => 'none' as const };
    const link = new Link({ storeClock: systemClock, processClock: dead, ...options });
    void link.call('add', async () => done());
    await effect;
  });
});
