import { expect, test } from 'vitest';
import { systemClock } from './domain/clock.ts';
import { OutboxWatch } from './outbox-watch.ts';

test('warns within seconds if the oldest row stays, once a minute, and says when rows are stored again', async () => {
  let now = 0;
  let oldestSeq: string | null = null;
  const lines: string[] = [];
  const watch = new OutboxWatch({
    outbox: { readLag: async () => ({ oldestSeq, lagMs: now, rejected: 0 }) },
    clock: { ...systemClock, monotonic: () => now },
    log: {
      warn: (_: unknown, text: string) => lines.push(`${now / 1000}: ${text}`),
      info: (text: string) => lines.push(`${now / 1000}: ${text}`),
    } as never,
  });
  const see = async (seq: string | null, untilMs: number) => {
    oldestSeq = seq;
    for (; now < untilMs; now += 2_000) await watch.check();
  };
  await see(null, 10_000);
  // A backlog that shrinks is no stall, however old its rows are.
  for (let seq = 0; seq < 10; seq += 1) await see(String(seq), now + 4_000);
  expect(lines).toEqual([]);
  now = 0;
  await see('100', 70_000);
  expect(lines).toEqual([
    '6: the oldest row of the outbox is not stored as an event',
    '66: the oldest row of the outbox is not stored as an event',
  ]);
  await see('101', 74_000);
  expect(lines.slice(2)).toEqual(['70: rows of the outbox are stored again']);
});
