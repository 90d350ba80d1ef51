import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EventContent } from '../domain/event.ts';
import type { CommittedDelivery } from '../ports/hand-over.ts';
import { encodeCommitted, encodeShards, FrameReader, type PeerMessage } from './peer-frames.ts';

const text = fc.string({ unit: 'binary', maxLength: 20 });
const event = fc.record({
  id: fc.uuid(),
  tenant: text,
  type: text,
  data: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  idempotencyKey: fc.option(text),
  schemaVersion: fc.option(text),
  headers: fc.option(fc.dictionary(text, text, { maxKeys: 3, noNullPrototype: true })),
}) satisfies fc.Arbitrary<EventContent>;
const delivery = fc.record({
  id: fc.uuid(),
  endpointId: fc.uuid(),
  dueAt: fc.option(fc.integer({ min: 0 })),
  fifo: fc.boolean(),
});
const commit = fc.record({ sentAt: fc.integer({ min: 0 }), endpointVersion: fc.nat() });
const committed = fc
  .tuple(
    fc.array(fc.tuple(event, fc.array(delivery, { minLength: 1, maxLength: 4 })), {
      minLength: 1,
      maxLength: 5,
    }),
    commit,
  )
  .map(([events, commit]) => ({
    kind: 'committed' as const,
    commit,
    deliveries: events.flatMap(([event, rows]) =>
      rows.map((row): CommittedDelivery => ({ delivery: row, event })),
    ),
  }));
const owns = fc
  .tuple(
    fc.array(fc.integer({ min: 0, max: 255 })),
    fc.uuid(),
    fc.record({ loopDelayMs: fc.nat(), commitMs: fc.nat() }),
  )
  .map(([shards, from, load]) => ({ kind: 'shards' as const, shards, from, load }));
const message = fc.oneof(committed, owns);
type Encoded = typeof message extends fc.Arbitrary<infer M> ? M : never;

const encode = (given: Encoded): Buffer =>
  given.kind === 'shards'
    ? encodeShards(given.shards, given.from, given.load)
    : encodeCommitted(given.deliveries, given.commit);

test('messages are decoded as they were encoded, in whatever pieces they arrive', () => {
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 4 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (messages, cuts) => {
        const bytes = Buffer.concat(messages.map(encode));
        const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
        const reader = new FrameReader();
        const decoded = at.slice(1).flatMap((end, index) => reader.read(bytes.subarray(at[index], end)));
        expect(decoded).toEqual(messages);
      },
    ),
  );
});

test('an event with many deliveries is written once and arrives as one object', () => {
  const data = Buffer.alloc(10_000, 'x');
  const event: EventContent = {
    id: '01890000-0000-7000-8000-000000000000',
    tenant: 'acme',
    type: 'a.b',
    data,
    idempotencyKey: null,
    schemaVersion: null,
    headers: null,
  };
  const deliveries = Array.from({ length: 10 }, (_, n) => ({
    delivery: { id: `d${n}`, endpointId: `e${n}`, dueAt: null, fifo: false },
    event,
  }));
  const COMMIT = { sentAt: 1, endpointVersion: 2 };
  const bytes = encodeCommitted(deliveries, COMMIT);
  expect(bytes.length).toBeLessThan(11_000);
  const [decoded] = new FrameReader().read(bytes);
  expect(decoded).toEqual({ kind: 'committed', deliveries, commit: COMMIT });
  expect(
    new Set((decoded as Extract<PeerMessage, { kind: 'committed' }>).deliveries.map((one) => one.event)).size,
  ).toBe(1);
});

test('rejects bytes that are not a frame as soon as they arrive', () => {
  expect(() => new FrameReader().read(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toThrow('invalid frame of');
  expect(() => new FrameReader().read(Buffer.alloc(4))).toThrow('invalid frame of 0 bytes');
});
