import { describe, expect, it } from 'vitest';
import { NOW, newItem, newLane, takeNext } from '../../test/support/lanes.ts';
import type { Uuid } from '../domain/ids.ts';
import { type DebounceDecisionSet, type DebounceRequest, DROP, SEND_AS_IT_IS } from '../ports/debouncer.ts';
import { DebounceDecisions } from './debounce.ts';

function newDecisions() {
  const calls: { request: DebounceRequest; answer: (skipped?: readonly Uuid[]) => void; fail: () => void }[] =
    [];
  const debouncer = {
    decideDebounce: (request: DebounceRequest) =>
      new Promise<DebounceDecisionSet>((resolve, reject) => {
        const answer = (skipped: readonly Uuid[] = []): void =>
          resolve({
            skipped,
            decisions: new Map(
              request.asked.map(({ id }) => [id, skipped.includes(id) ? DROP : SEND_AS_IT_IS]),
            ),
          });
        calls.push({ request, answer, fail: () => reject(new Error('no store')) });
      }),
  };
  return { calls, decisions: new DebounceDecisions(debouncer, { now: () => NOW, monotonic: () => NOW }) };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const askedOf = ({ request }: { request: DebounceRequest }) => request.asked.map(({ id }) => id);

describe('FAN-4: calls about debounced deliveries', () => {
  it('one call per lane at a time, and those that wait for it share the next one', async () => {
    const lane = newLane({ debounce: { key: 'data.a', window_ms: 100 } });
    for (let n = 1; n <= 6; n += 1) lane.addFresh(newItem(n));
    const [sent, a, b, c, d] = Array.from({ length: 5 }, () => takeNext(lane, NOW)!);
    const { calls, decisions } = newDecisions();
    const first = [a, b].map((item) => decisions.decide(lane, item!));
    await turn();
    expect(calls.map(askedOf)).toEqual([[a!.delivery.id, b!.delivery.id]]);
    const later = [c, d].map((item) => decisions.decide(lane, item!));
    await turn();
    expect(calls).toHaveLength(1);
    const queued = lane.queuedFresh;
    const [next] = [newItem(6)];
    calls[0]!.answer([a!.delivery.id, next!.delivery.id]);
    expect((await Promise.all(first)).map(({ kind }) => kind)).toEqual(['drop', 'send']);
    // Deliveries that ended in the store are forgotten.
    expect(lane.queuedFresh).toBe(queued - 1);
    await turn();
    expect(askedOf(calls[1]!)).toEqual([c!.delivery.id, d!.delivery.id]);
    // What was decided before the call is under way, so the store cannot supersede it any more.
    expect(calls[1]!.request.underWay).toEqual([sent!, a!, b!].map(({ delivery }) => delivery.id));
    calls[1]!.answer();
    await Promise.all(later);
  });

  it('goes on after a failed call', async () => {
    const lane = newLane({ debounce: { key: 'data.a', window_ms: 100 } });
    for (let n = 1; n <= 2; n += 1) lane.addFresh(newItem(n));
    const [a, b] = [takeNext(lane, NOW)!, takeNext(lane, NOW)!];
    const { calls, decisions } = newDecisions();
    const failed = decisions.decide(lane, a);
    await turn();
    const next = decisions.decide(lane, b);
    calls[0]!.fail();
    await expect(failed).rejects.toThrow('no store');
    await turn();
    calls[1]!.answer();
    expect((await next).kind).toBe('send');
  });

  it('two calls of all lanes run at a time, so that other endpoints keep a connection', async () => {
    const { calls, decisions } = newDecisions();
    const lanes = Array.from({ length: 4 }, () => newLane({ debounce: { key: 'data.a', window_ms: 100 } }));
    for (const lane of lanes) lane.addFresh(newItem(1));
    const answers = Promise.allSettled(lanes.map((lane) => decisions.decide(lane, takeNext(lane, NOW)!)));
    await turn();
    expect(calls).toHaveLength(2);
    calls[0]!.answer();
    calls[1]!.fail();
    await turn();
    expect(calls).toHaveLength(4);
    for (const { answer } of calls) answer();
    const kinds = (await answers).map(({ status }) => status);
    expect(kinds).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  });
});
