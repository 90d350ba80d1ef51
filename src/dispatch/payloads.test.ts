import { expect, test } from 'vitest';
import { anEvent } from '../../test/support/attempts.ts';
import type { EventContent } from '../domain/event.ts';
import { newEventId, type Uuid } from '../domain/ids.ts';
import { Payloads } from './payloads.ts';

const MIB = 1024 * 1024;

function start(bytes: number) {
  const reads: Uuid[] = [];
  const time = { ms: 0 };
  const payloads = new Payloads({
    clock: { monotonic: () => time.ms },
    events: {
      load: async (ids) => {
        reads.push(...ids);
        return new Map(ids.map((id) => [id, anEvent({ id, data: Buffer.alloc(bytes) })]));
      },
    },
    onProblem: (_what, error) => {
      throw error;
    },
  });
  const load = (id: Uuid) =>
    new Promise<EventContent | null | undefined>((resolve) => payloads.load(id, resolve));
  return { payloads, load, reads, time };
}

test('an event with several deliveries is read once while it is among the latest', async () => {
  const { load, reads } = start(MIB / 2);
  const ids = Array.from({ length: 20 }, () => newEventId(Date.now()));
  for (const id of ids) for (let delivery = 0; delivery < 3; delivery += 1) await load(id);
  expect(reads).toEqual(ids);
  // The cache holds 8 MiB at most.
  await load(ids.at(-5)!);
  expect(reads).toHaveLength(20);
  await load(ids[0]!);
  expect(reads).toHaveLength(21);
});

test('a payload that was deleted is neither read nor returned from the cache', async () => {
  const { payloads, load, reads } = start(10);
  const id = newEventId(Date.now());
  expect(await load(id)).toMatchObject({ id });
  payloads.expunge(id);
  expect(await load(id)).toBeNull();
  expect(reads).toEqual([id]);
});

test('ids of expunged events do not displace each other, and are forgotten when no renewal repeats them', () => {
  const { payloads, time } = start(10);
  const ids = Array.from({ length: 30_000 }, () => newEventId(Date.now()));
  for (const id of ids) payloads.expunge(id);
  expect(ids.every((id) => payloads.isExpunged(id))).toBe(true);
  time.ms += 200_000;
  payloads.expunge(newEventId(Date.now()));
  expect(ids.some((id) => payloads.isExpunged(id))).toBe(false);
});
