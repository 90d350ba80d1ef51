import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anEvent } from '../../test/support/attempts.ts';
import { idOf, NOW, newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import { buildBatchBody } from '../deliver/envelope.ts';
import { systemClock } from '../domain/clock.ts';
import type { EventContent } from '../domain/event.ts';
import { eventIdOfDelivery, publicId, type Uuid } from '../domain/ids.ts';
import type { StoredBatch } from '../ports/batch-log.ts';
import { type Batch, BatchComposer } from './batch-composer.ts';

const clock = { ...systemClock, now: () => NOW };
/** Long enough for any receiver of these tests. */
const retry = { schedule: [0, 60], max_age_seconds: 3_600 };

interface GivenEvent {
  readonly bytes: number;
  readonly key: string | null;
}

const eventOf = (n: number, { bytes, key }: GivenEvent): EventContent =>
  anEvent({
    id: eventIdOfDelivery(idOf(n)),
    data: Buffer.from(`"${'x'.repeat(bytes)}"`),
    idempotencyKey: key,
    schemaVersion: n % 2 === 0 ? '2026-04-01' : null,
  });

/** Composes one batch of a lane that has these events queued, all of them in memory. */
async function compose(
  batch: { max_events: number; max_bytes: number },
  events: readonly GivenEvent[],
  stored?: StoredBatch & { readonly id: Uuid },
) {
  const lane = newLane({ batch: { ...batch, max_wait_ms: 0 }, retry });
  for (const [n, event] of events.entries())
    lane.addFresh({ ...newItem(n, { batchId: stored?.id ?? null }), event: eventOf(n, event) });
  const composer = new BatchComposer({
    clock,
    queue: { loadBatch: async () => stored! },
    payloads: { load: () => {}, isExpunged: () => false },
    onProblem: (what, error) => expect.unreachable(`${what}: ${error}`),
  });
  const replaced: Uuid[] = [];
  const leader = takeNext(lane, NOW)!;
  const composed = (await composer.compose(lane, leader, (id) => replaced.push(id))) as Batch;
  return { lane, composed, replaced };
}

const givenEvent = fc.record({
  bytes: fc.integer({ min: 0, max: 2_000 }),
  key: fc.option(fc.string({ maxLength: 255, unit: 'binary' })),
});

test('FAN-4: a batch has at most max_events events and max_bytes bytes, or a single event, and leaves the rest in the queue', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(givenEvent, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1_024, max: 20_000 }),
      async (events, max_events, max_bytes) => {
        const { lane, composed } = await compose({ max_events, max_bytes }, events);
        const body = buildBatchBody(
          lane.endpoint,
          composed.events,
          publicId('bat', composed.id),
          'https://posthorn.test',
        );
        expect(composed.items.length).toBeLessThanOrEqual(max_events);
        if (composed.items.length > 1) expect(body.length).toBeLessThanOrEqual(max_bytes);
        expect(JSON.parse(body.toString()).events).toHaveLength(composed.items.length);
        // The first events of the queue, in their order, each with its own payload.
        expect(composed.items.map(({ delivery }) => delivery.id)).toEqual(
          composed.items.map((_, n) => idOf(n)),
        );
        expect(composed.events.map(({ id }) => id)).toEqual(
          composed.items.map(({ delivery }) => eventIdOfDelivery(delivery.id)),
        );
        expect(lane.queuedFresh).toBe(events.length - composed.items.length);
      },
    ),
    { numRuns: 200 },
  ));

test('FAN-4: a known batch keeps its id and its order, whatever the limits are now; if an event is gone, the rest get a new id', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(givenEvent, { minLength: 2, maxLength: 10 }),
      fc.boolean(),
      async (events, isOneGone) => {
        const id = '0190cccc-0000-7000-8000-000000000001';
        const all = events.map((_, n) => n);
        const waiting = isOneGone ? all.slice(0, -1) : all;
        const composition = all.toReversed().map(idOf);
        const stored = {
          id,
          composition,
          waiting: waiting.map((n) => ({ ...newItem(n, { batchId: id }).delivery, startedAt: null })),
        } as unknown as StoredBatch & { readonly id: Uuid };
        const { composed, replaced } = await compose(
          { max_events: 1, max_bytes: 1_024 },
          waiting.map((n) => events[n]!),
          stored,
        );
        const ids = composed.items.map(({ delivery }) => delivery.id);
        if (isOneGone) {
          expect(composed.id).not.toBe(id);
          expect(replaced).toEqual([id]);
        } else {
          expect([composed.id, ids, replaced]).toEqual([id, composition, []]);
        }
      },
    ),
    { numRuns: 100 },
  ));
