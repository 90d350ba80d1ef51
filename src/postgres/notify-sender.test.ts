import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pool } from './database.ts';
import { CHANNEL_NAMES, decodeWake, encodeWake } from './notifier-channels.ts';
import { NotifySender } from './notify-sender.ts';

const uuid = fc.uuid();

describe('a wake message', () => {
  it('is decoded to the ids and the scope that were encoded', () => {
    const scope = fc.constantFrom('recent' as const, 'sweep' as const);
    fc.assert(
      fc.property(fc.array(uuid, { minLength: 1, maxLength: 300 }), scope, (endpointIds, scope) => {
        expect(decodeWake(encodeWake({ endpointIds, scope }))).toEqual({ endpointIds, scope });
      }),
    );
  });

  it('is decoded without the parts that are not ids', () => {
    expect(decodeWake('').endpointIds).toEqual([]);
    expect(decodeWake('not an id,,%%%').endpointIds).toEqual([]);
    fc.assert(fc.property(fc.string(), (text) => void decodeWake(text)));
  });
});

/** A sender, and the messages of each statement that it has sent. */
function newSender(query: () => Promise<void> = async () => {}) {
  const statements: [channel: string, payload: string][][] = [];
  const failures: unknown[] = [];
  const pool = {
    query: ({ values: [channels, payloads] }: { values: [string[], string[]] }) => {
      statements.push(channels.map((channel, index) => [channel, payloads[index]!]));
      return query();
    },
  };
  const sender = new NotifySender(pool as unknown as Pool, (error) => failures.push(error));
  return { sender, statements, failures };
}

describe('the sender of notifications', () => {
  it('names each endpoint once, many per message, and no message exceeds what PostgreSQL takes', async () => {
    const { sender, statements } = newSender();
    const ids = fc.sample(uuid, { numRuns: 1000, seed: 1 });
    for (let round = 0; round < 2; round += 1)
      for (const id of ids) sender.add('wake', { endpointIds: [id], scope: 'recent' });
    await sender.flush();
    expect(statements).toHaveLength(1);
    const payloads = statements[0]!.map(([, payload]) => payload);
    expect(payloads.every((payload) => payload.length < 8000)).toBe(true);
    expect(payloads.flatMap((payload) => decodeWake(payload).endpointIds).toSorted()).toEqual(ids.toSorted());
  });

  it('keeps the wider scope of an endpoint that is woken twice', async () => {
    const { sender, statements } = newSender();
    const [one, two] = fc.sample(uuid, { numRuns: 2, seed: 1 });
    sender.add('wake', { endpointIds: [one!], scope: 'recent' });
    sender.add('wake', { endpointIds: [two!], scope: 'sweep' });
    sender.add('wake', { endpointIds: [two!], scope: 'recent' });
    await sender.flush();
    expect(statements.flat().map(([, payload]) => decodeWake(payload))).toEqual([
      { endpointIds: [one], scope: 'recent' },
      { endpointIds: [two], scope: 'sweep' },
    ]);
  });

  it('gives up a statement that fails and sends the next one', async () => {
    let calls = 0;
    const { sender, failures } = newSender(async () => {
      calls += 1;
      if (calls === 1) throw new Error('away');
    });
    for (let i = 0; i < 2; i += 1) {
      sender.add('tailInterest', 'x');
      await sender.flush();
    }
    expect(calls).toBe(2);
    expect(failures).toHaveLength(1);
  });

  it('flushes all messages that were added before, however many are added afterwards', async () => {
    const { sender, statements } = newSender(async () => {
      await Promise.resolve();
      if (statements.length < 50) sender.add('tail', 'more');
    });
    sender.add('tail', 'first');
    await Promise.resolve();
    sender.add('tail', 'second');
    await sender.flush();
    expect(statements.flat()).toContainEqual([CHANNEL_NAMES.tail, 'second']);
    expect(statements.length).toBeLessThan(5);
  });
});
