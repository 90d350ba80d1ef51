import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LaneModel, turn } from '../../test/support/lane-model.ts';
import { takeNext } from '../../test/support/lanes.ts';
import type { LoadScope } from './refill.ts';

/** `LANE_RUNS=5000` makes more runs. */
const RUNS = Number(process.env.LANE_RUNS ?? 500);

const which = fc.nat({ max: 7 });
const weighted = <T>(weight: number, arbitrary: fc.Arbitrary<T>) => ({ weight, arbitrary });
const step = fc.oneof(
  weighted(
    5,
    fc.record({
      do: fc.constant('accept' as const),
      delayMs: fc.option(fc.integer({ min: 1, max: 20_000 })),
    }),
  ),
  weighted(8, fc.record({ do: fc.constant('take' as const) })),
  weighted(
    5,
    fc.record({
      do: fc.constant('end' as const),
      which,
      how: fc.constantFrom(
        'markAnswered' as const,
        'markAnswered' as const,
        'putBack' as const,
        'drop' as const,
      ),
    }),
  ),
  weighted(
    5,
    fc.record({
      do: fc.constant('settle' as const),
      which,
      how: fc.constantFrom('ended' as const, 'retry' as const, 'retry' as const, 'not_moved' as const),
      delayMs: fc.integer({ min: 1, max: 60_000 }),
      hasRoom: fc.boolean(),
    }),
  ),
  // Most reads are answered soon: otherwise runs would consist of waiting reads.
  weighted(12, fc.record({ do: fc.constant('answer' as const), fails: fc.constant(false) })),
  weighted(1, fc.record({ do: fc.constant('answer' as const), fails: fc.constant(true) })),
  weighted(
    1,
    fc.record({
      do: fc.constant('request' as const),
      scope: fc.constantFrom<LoadScope>('more', 'recent', 'sweep', 'all'),
    }),
  ),
  weighted(1, fc.record({ do: fc.constant('replay' as const), which })),
  weighted(3, fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 10_000 }) })),
  weighted(1, fc.record({ do: fc.constant('clear' as const) })),
);

async function play(
  model: LaneModel,
  action: typeof step extends fc.Arbitrary<infer T> ? T : never,
): Promise<void> {
  switch (action.do) {
    case 'accept':
      return model.accept(action.delayMs);
    case 'take':
      return model.take();
    case 'end':
      return model.end(action.which, action.how);
    case 'settle':
      return model.settle(action.which, action.how, action.delayMs, action.hasRoom);
    case 'answer':
      return model.answer(action.fails);
    case 'request':
      return model.request(action.scope);
    case 'replay':
      return model.replay(action.which);
    case 'wait':
      model.now += action.ms;
      model.refill.markSeq(model.seq);
      return model.loadIfLow();
    case 'clear':
      model.lane.clearQueue();
      return model.request('all');
  }
}

describe('a lane with its refill, against a model of the store', () => {
  it.each([
    ['unordered', false],
    ['FIFO', true],
  ])('%s: sends nothing twice, loses nothing, never stalls, and frees its memory', async (_, fifo) => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { maxLength: 60, size: 'max' }),
        async (maxInFlight, steps) => {
          const model = new LaneModel(fifo, fifo ? 1 : maxInFlight);
          await turn();
          for (const action of steps) {
            await play(model, action);
            await turn();
            model.check();
          }
          await model.drain();
          expect(model.memory).toMatchObject({ items: 0, bytes: 0 });
        },
      ),
      { numRuns: RUNS },
    );
  });

  it('FIFO: ignores a read that began before the queue was cleared', async () => {
    const model = new LaneModel(true, 1);
    await turn();
    await model.answer();
    model.accept(null);
    await turn();
    await model.answer();
    model.take();
    model.accept(null);
    await turn();
    model.end(0, 'drop');
    await model.answer();
    model.take();
    expect(model.inFlight.size).toBe(0);
    await model.answer();
    model.take();
    expect([...model.inFlight].map(({ delivery }) => delivery.seq)).toEqual([1]);
  });

  it('gives back all memory when it is closed, with requests still on the wire', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const model = new LaneModel(false, 3);
        await turn();
        for (const action of steps) await play(model, action);
        model.lane.close();
        expect(model.memory).toMatchObject({ items: 0, bytes: 0 });
        await model.answer();
        for (const taken of model.inFlight) {
          model.lane.markAnswered(taken);
          model.lane.reschedule(taken, { ...taken.delivery, attempts: 1, dueAt: model.now }, true);
        }
        for (const answered of model.unsettled) model.lane.finish(answered);
        expect(model.memory).toMatchObject({ items: 0, bytes: 0 });
        expect(takeNext(model.lane, model.now + 1e9)).toBeNull();
      }),
      { numRuns: RUNS },
    );
  });
});
