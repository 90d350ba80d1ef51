import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pool } from '../postgres/database.ts';
import { decodeWake, encodeWake, WakeSender, wantOfWake } from './wake.ts';

const uuid = fc.uuid();

describe('a wake-up', () => {
  it('comes back as it went', () => {
    fc.assert(
      fc.property(fc.array(uuid, { minLength: 1, maxLength: 300 }), (ids) => {
        expect(decodeWake(encodeWake(ids))).toEqual(ids);
      }),
    );
  });

  it('is understood as far as it can be', () => {
    expect(decodeWake('')).toEqual([]);
    expect(decodeWake('not an id,,%%%')).toEqual([]);
    fc.assert(fc.property(fc.string(), (text) => void decodeWake(text)));
  });

  it('says each endpoint once, many in a message, none longer than PostgreSQL takes', async () => {
    const messages: string[][] = [];
    const pool = { query: ({ values }: { values: [string[]] }) => void messages.push(values[0]) };
    const sender = new WakeSender(pool as unknown as Pool, () => {});
    const ids = fc.sample(uuid, { numRuns: 1000, seed: 1 });
    for (const id of ids) sender.wake(id);
    for (const id of ids) sender.wake(id);
    await sender.idle();
    expect(messages).toHaveLength(1);
    expect(messages[0]!.every((message) => message.length < 8000)).toBe(true);
    expect(new Set(messages[0]!.flatMap(decodeWake))).toEqual(new Set(ids));
  });

  it('may ask to look further back, and that is not lost among others for the same endpoint', async () => {
    const messages: string[] = [];
    const pool = { query: ({ values }: { values: [string[]] }) => void messages.push(...values[0]) };
    const sender = new WakeSender(pool as unknown as Pool, () => {});
    const [one, two] = fc.sample(uuid, { numRuns: 2, seed: 1 });
    sender.wake(one!);
    sender.wake(two!, 'sweep');
    sender.wake(two!);
    await sender.idle();
    expect(messages.map((message) => [wantOfWake(message), decodeWake(message)])).toEqual([
      ['recent', [one]],
      ['sweep', [two]],
    ]);
  });

  it('that fails is given up, and the next one is sent', async () => {
    let calls = 0;
    const failures: unknown[] = [];
    const pool = {
      query: async () => {
        calls += 1;
        if (calls === 1) throw new Error('away');
      },
    };
    const sender = new WakeSender(pool as unknown as Pool, (error) => failures.push(error));
    sender.wake(fc.sample(uuid, 1)[0]!);
    await sender.idle();
    sender.wake(fc.sample(uuid, 1)[0]!);
    await sender.idle();
    expect(calls).toBe(2);
    expect(failures).toHaveLength(1);
  });
});
